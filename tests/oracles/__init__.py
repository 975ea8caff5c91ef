"""Two oracles of different kinds for the highest rate of a small deployment, and how to draw such deployments.

They read the plain fields of a validated Instance and share nothing with the package beyond that: seconds and
bytes come from the formulas of the source chapter (`seconds`), the best plan from trying every cell of counts
with an exact simplex over whole routes (`cells`), or from closed forms by cuts (`cuts`).
"""
