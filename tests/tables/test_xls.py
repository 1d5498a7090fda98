"""The binary workbooks of old Excel, from a file that another program wrote."""

import base64
import datetime as dt
import gzip

import pandas as pd
import pytest

from deniable.cli._app import run
from deniable.tables import read_cells
from deniable.tables.files import open_table

# xlwt 1.3.0 wrote it: a sheet "Cover" with one cell, and a sheet "Data" with the columns below, numbers as numbers,
# dates as numbers in the format YYYY-MM-DD, truth values as such, gaps not written; gzip, then base85
PACKED = (
    "ABzY8000000t4-sYiJx*6vxk<*Umm>cJ`4%QwSko)bv5piip~-*4Th0p)H7y7Ic#gQj+Y3H7HfkY7Gb?2>s*(p-?{*p;{2Fs8zp-3Kc~JMM("
    "5xJ_%X`+pOoDnZ4dyuh4)7B72rObDzKY-+S)dySraqEG?Zn*Sic?*&eWAwVee|DHC{QJDCWuzTKu|=kDXx?%Ia3tdD{8T=*dPGD9(>crSwmZ"
    "#$o&2lxrEBQOsW%|_h6j<%OI)CFnSEgW2X7QBX62%A|~nf(;|3j4RX?T75|;F1^F@5Z)E;z77rn;5z!UB~xZ16&uP7w{hU`JPKgpa(vqb^P>"
    "8B5CWwovoww*$r0F=M>;HU`WT}M%<!&5#E3tzyoO8$H%vijxIqJ!+jclYxe{E+Ig=(>F<`WZ@B<0|6MQ7{6o2qLA<*Bq~!n{hxWsQ7V{zmaM"
    "+<57w&347Pl6m0OwpPaA35)P`?ay*nznqdD{=g^Uc-*c35aW-mn4Y>&LM1qemN4G1kt-bCYokYp0siG2ZrHnx#g=!z1YLot@+KPWHRl-^6}6"
    "M@I#3Es?gh1pLAk&`(2=(<OfGA{^P}GrxR2K6#+_5SJY1<0LtBuA>n`8=j#a*g2Fni67z~TiHL$)GeIuWnaaa!295Vo;0!V1h;vPYX|W;yV$"
    ";|U9Y5X!1UtE!Sj8KKi6)=^x3iHC#q+^tDS-YJOrn)KYdQXHnB~-@-o@`wa#6n+tZKiH~(#`@~tS<-cC=}B3z-D6RngSzg8LErKY%*{blPht"
    "38mcosB!Iu5ngr#7V9*J4w#MoGo)U<{X)GFz2RZVIT`8Qv^OjZGy?S4SJ;Wf`w$)^0Cb3m?rIsm`RD2foL(&Pl-t+w~i3elSE4)T1?EQMB6~"
    "LHH|hCx7<#|oFv*z6lr@R=2D_#AUc{xhl%+yB8HOaC>k9m=2N0;AiA1Hmx+HIBw|?-U4`f}v5*oy1JTnodQ4n7Lc~py=qaQ2w8&%(#Ehmf!^"
    "9sRA!4s2W)zJXEi%4==xZ8%CVtT(VxJ`X3endhlQj^tQsYw=<t$_kTu4Y+Wwco>A~^#or)kTvwl|+AZG%!<PSKXrB9b={^V<C7nfU5SA`VGn"
    "ULoeSh!hOOf~K*+#1~#C;tokHD5EZD5eW>$K+_m7@yRnp+$o8HqA}1S5*mo1rZHsV%sWK9SrS8q7;2Fz8i++rW08r6KPKX>l2}wmUDP5I8Hk"
    "alF=FEW&xyE45+g-pq(!D=AeJ<ZrDR|HmWX>Lv7``7T4c%wVp(dWm0jkQy)RwaWo5KwEg}^IsiJACB>UkCX}d>it0>wkT12V_VpW^JYO)_*B"
    "I1N3Ruy7ZMubm!FrD&U>)N`Q;IBZyUlW}4iyyrlne>01D|oGT|0en0+97D-X90gw-VF`Bx8T^C*3TwzMTaG>u}|m!LbCht=`EOnN!Bs5=Jkt"
    "5fl$YD%^jnE?-g3>^H<lR^FMz6pP5GP000&M00"
)
EXPECTED = pd.DataFrame(
    {
        "town": [("Ulm", "Köln")[i % 2] for i in range(1, 21)],
        "pay": [1000.5 + 7 * i if i % 9 else None for i in range(1, 21)],
        "since": [dt.date(2023, 1, i % 28 + 1) for i in range(1, 21)],
        "member": [i % 3 == 0 for i in range(1, 21)],
        "code": [f"{i % 5:03d}" for i in range(1, 21)],
    }
)


@pytest.fixture
def workbook(tmp_path):
    pytest.importorskip("python_calamine")
    (tmp_path / "people.xls").write_bytes(gzip.decompress(base64.b85decode(PACKED)))
    return tmp_path / "people.xls"


def test_an_old_workbook_holds_the_cells_that_were_written(workbook):
    opened = open_table(workbook, sheet="Data")
    assert opened.notes == ("sheet 'Data' was read; others are 'Cover' (--sheet)",)
    for name in EXPECTED:
        found, expected = read_cells(opened.frame[name]), read_cells(EXPECTED[name])
        assert found.kind.tolist() == expected.kind.tolist(), name
        assert found.spelled.tolist() == expected.spelled.tolist(), name


def test_the_cover_of_an_old_workbook_is_named(workbook, capsys):
    assert run(["check", str(workbook)]) == 2
    assert "'Data' (--sheet)" in " ".join(capsys.readouterr().out.split())
    assert run(["check", str(workbook), "--sheet", "Data"]) == 0


COMMANDS = {
    "check": [],
    "train": ["--target", "member"],
    "publish": ["--statistic", "mean(pay)"],
    "synthesize": [],
    "profile": ["--target", "member", "--epsilon", "1"],
    "attack": ["--target", "member", "--model", "tree"],
    "audit": [],
    "audit --members": ["--members", "{}", "--nonmembers", "{}"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_that_reads_a_table_takes_a_sheet_and_a_mark(command, workbook, capsys):
    words = [word.format(workbook) for word in COMMANDS[command]]
    assert run([command.split()[0], str(workbook), *words, "--sheet", "data", "--decimal", ","]) == 2
    assert "it has no sheet 'data'" in " ".join(capsys.readouterr().err.split())
