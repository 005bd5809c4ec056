"""y_i = Σ_jk w_ijk (v_j ∘ u_k), w_ijk = softmax over all pairs (j, k) of Σ_c q_ic a_jc b_kc."""

from math import exp


def attend(q, a, b, v, u):
    places = range(len(a))
    y = []
    for asked in q:
        scores = {
            (j, k): sum(one * two * three for one, two, three in zip(asked, a[j], b[k], strict=True))
            for j in places
            for k in places
        }
        most = max(scores.values())
        weights = {pair: exp(score - most) for pair, score in scores.items()}
        total = sum(weights.values())
        row = [0.0] * len(v[0])
        for (j, k), weight in weights.items():
            for c in range(len(row)):
                row[c] += weight / total * v[j][c] * u[k][c]
        y.append(row)
    return y
