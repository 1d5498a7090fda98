"""How far Opacus lets a clipped gradient exceed the clipping norm: it sums squares in the gradients' precision.

    python benchmarks/accounting/clipping_precision.py            # needs torch and opacus

Prints, for each device at hand, precision and number of parameters in one tensor, the largest norm after clipping over
the clipping norm, minus 1: for equal entries (the worst here), and for normal ones.
"""

import torch
from opacus.optimizers import DPOptimizer


def excess(entries: torch.Tensor) -> float:
    """Clip the rows of ``entries`` as one parameter's gradients of a batch; return how much the sum's norm exceeds."""
    parameter = torch.nn.Parameter(torch.zeros(entries.shape[1], dtype=entries.dtype, device=entries.device))
    optimizer = DPOptimizer(
        torch.optim.SGD([parameter], lr=1.0), noise_multiplier=0.0, max_grad_norm=1.0, expected_batch_size=1
    )
    parameter.grad_sample = entries
    optimizer.clip_and_accumulate()
    total = parameter.summed_grad
    return sum(float(part.double().square().sum()) for part in total.split(2**22)) ** 0.5 / len(entries) - 1


def main() -> None:
    torch.manual_seed(0)
    print("device precision parameters  equal entries  normal entries")
    for device in ["cpu"] + ["cuda"] * torch.cuda.is_available():
        for dtype in (torch.float32, torch.bfloat16):
            for many in (10**5, 10**6, 10**7, 10**8):
                equal = torch.full((1, many), 0.1, dtype=dtype, device=device)
                normal = torch.randn((1, many), device=device).to(dtype)
                name = str(dtype).removeprefix("torch.")
                print(f"{device:6} {name:9} {many:10.0e}  {excess(equal):13.1e}  {excess(normal):14.1e}")


if __name__ == "__main__":
    main()
