"""The weights of yomi.native.go.move_features, packed: sixteenths as int8 by feature, zlib, base 85.

They imitate the policy of g170-b6c96 on its own positions on 9x9 and 19x19 (moves drawn from the policy, one in eight
at random): softmax regression by bench/prior_weights.py. Only the weight of filling an own eye is set by hand.
"""

import base64
import zlib

import numpy as np
import numpy.typing as npt

UNIT = 1 / 16

PACKED = (
    "c-kG3*>2lL7={1gkQ@#dkrX9S)Mi_8oV3nOQK0A}^s#&00!4uUZeyfLY-"
    "^(_k>WPohgEwX;NUDD{5nvphd+O_bxZ&dl2s8DUC|ust(FUsYE;r>RhCsv5DCGGEVgYgfToE=RTU6~&o7((ep`b^6<I(%=WW|IZByr<5GrBeB7_h"
    "i=zDcAP#=FMKmWpHZ>s<E(WB3h1lb>tM(REt@P^&d+IfEX_)VPH&gZT1c~job*1=);^)TT=vHxT}N@IpaB)tiWiT`$KeL`PO4`12y_U|dNHmBVl>"
    "9#_WgzhTN%JpjrVVpM7bzw}q<#;Si4#k(j_RV5aLA%8EY%OdCTw`JFA0pea>qHa_J0jaK*q!CE?r#M@HZEmigM#xNQCH)m=R3Q@-"
    "j89Jox<ofm8>R_`(xj`RdIOP`A-T$uYS1So?3#AQNP`HjR3_J^a`<E&KC?}Of+M4O-<?;P>wQz-"
    "XxYU=(RNT21S~yQ6HnKjdQc;N@l0bbd*u~lAa@yL^1!NST4Rtw|weN-"
    "_INRffQHAxnR^TETuu=SZaX%!?{^g1M%nd+bP;UG4;J3oU??>i^@i|<SL7f>Blpf-OK|!N?Nc)ySKu?y~Vnih3PpN2I)(YXQ29MmEMg=^d@WzJld"
    "gyXGj*ERasO@L9}HK$|P)B!gX1JGAAd5IGn3W^)&}~Mvod*)#yqN;Dsv&7s2{#6Us+6!Sd*M5^ZC!K8@&wJ?PTRKLWH(a;_jlMH^OGQp^&!wGmWm"
    ")_e17I?BNitRHy?f#SdJa-65R4_%pF3`$nS4M3ii7|5U+)Ky>0dabn>V!>eJnRD^hvQWxZ&eMvfSRhhfvbIQ)e(B*!47WeI&XNvR=X-"
    "3FW;B5|qg~x?Um9nI6hx5&Q1zB!_M?&D3C(E?rK+pY5w(>}LA>gk%#yK}x<l(u5yW@NtvQb6WC#?-"
    "hKEgj2?!SHkq1Zv=s}m)BOJ*Z*A@uR?kb8WBp<_MI5!OqT(~*=wXBdK*tI-@|CGf0Owt(~`}2X)9F--jTc|F8sdDKC!6x8cRiIkTB_uOd;Qe)D!)"
    "?EYcMRY|%cYZ@w}9nFEB8Vc6qL8c*=u+eC!#jh+e<K>rws<|qh1I(*rS_n4<`#$uwl};9gIzb&W3OIV{;;TF=IB?hxxU$);xE9c>s9G0JEy=XE_m"
    "x+~rE{rlf#Fh9ps~H8A^o<}!#Bs}*Q^5Bwf_?f@N|ilTaR=gL~Wa`Fyavt>7#wJd0%(8CNs8Ab%?M#9dP8q+?s?19=*K9HKFw$vQZ_5VkLe*q0f4"
    ";l"
)


def unpack() -> npt.NDArray[np.float32]:
    return np.frombuffer(zlib.decompress(base64.b85decode(PACKED)), np.int8).astype(np.float32) * np.float32(UNIT)
