"""Whether the bugs that tests/simulation plants are still bugs of this broker: every patch applies.

python -m scripts.check_planted
"""

import sys

from tests.simulation.planting import patches, planted_bugs, why_it_does_not_apply


def main() -> int:
    bugs = planted_bugs()
    unlisted = patches() - {bug.name for bug in bugs}
    problems = [f"{name}.patch is not in table.tsv" for name in sorted(unlisted)]
    for bug in bugs:
        reason = why_it_does_not_apply(bug)
        if reason is not None:
            problems.append(f"{bug.patch.name} does not apply any more; write it anew:\n{reason}")
    for problem in problems:
        print(f"tests/simulation/planted: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
