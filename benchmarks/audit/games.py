"""Attacks in the games of Mahloujifar et al., Appendix H, against the bound.

python benchmarks/audit/games.py [games per side and cell]
"""

import sys
from pathlib import Path

import deniable as dn

sys.path.append(str(Path(__file__).resolve().parents[2] / "papers"))
from known_laws import ratio_advantage
from membership_games import final_model_limit, play_game

CELLS = [(50, 0.1, s) for s in (0.5, 1.0, 2.0, 4.0)] + [(5000, 0.01, s) for s in (0.5, 1.0, 2.0, 4.0)]


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    print("| T | q | sigma | bound | FMA limit / bound | OFM: FMA − limit | YFM: FMA − limit | IMA | LR / bound |")
    print("|---|---|---|---|---|---|---|---|---|")
    for steps, q, sigma in CELLS:
        run = {"noise_multiplier": sigma, "sample_rate": q, "steps": steps, "dimension": 100_000, "rng": 0}
        bound = dn.tradeoff(dn.SubsampledGaussian(sigma, q, steps)).advantage()
        limit = final_model_limit(sigma, q, steps)
        final = [play_game(game, "FMA", n=n, **run).advantage_at() - limit for game in ("OFM", "YFM")]
        games = n if steps <= 50 else n // 20  # the whole transcript costs T numbers per game
        votes = play_game("OIG", "IMA", n=games if steps <= 50 else n // 100, **run).advantage_at()
        whole, error = ratio_advantage(play_game("OIG", "LR", n=games, **run))
        print(
            f"| {steps} | {q} | {sigma} | {bound:.4f} | {limit / bound:.3f} | {final[0]:+.4f} | {final[1]:+.4f} "
            f"| {votes:.4f} | {whole / bound:.4f} ± {error / bound:.4f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
