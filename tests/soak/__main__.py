"""`python -m tests.soak --seconds 180 --seed 7`: a campaign; exit code 1 if it fails."""

import argparse
import random
import signal
import sys

from podstatus.runtime.process.sandbox.isolation import BubblewrapUnavailableError, find_bubblewrap
from tests.soak.campaign import Campaign, Plan, ViolatedError, logs
from tests.soak.report import Report
from tests.soak.stage import stage


def main() -> int:
    options = _options()
    seed = random.randrange(10**6) if options.seed is None else options.seed
    isolation = options.isolation or _isolation(seed)
    plan = Plan(seed=seed, seconds=options.seconds, kills=options.kills)
    report, keep = Report(), [bool(options.keep)]
    wanted = f"{plan.kills} kills" if plan.kills else f"{plan.seconds:g} s"
    report.say(f"soak: seed {seed}, isolation {isolation}, {wanted}")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with stage(isolation, keep=keep) as made:
        campaign = Campaign(plan, made, report)
        try:
            campaign.run()
        except ViolatedError as error:
            keep.append(True)
            evidence = {
                "again": f"make soak SEED={seed} ISOLATION={isolation} {_amount(plan)}",
                "faults": campaign.last_fault,
                "logs": logs(made.folder),
            }
            sys.stdout.write(campaign.summary())
            report.complain(map(str, error.args), evidence)
            return 1
        except KeyboardInterrupt:
            report.say("interrupted")
            sys.stdout.write(campaign.summary())
            return 130
        sys.stdout.write(campaign.summary())
        report.say(f"all held; seed {seed}")
    return 0


def _amount(plan: Plan) -> str:
    return f"KILLS={plan.kills}" if plan.kills else f"SECONDS={plan.seconds:g}"


def _isolation(seed: int) -> str:
    """By the seed, where there is a choice."""
    try:
        find_bubblewrap()
    except BubblewrapUnavailableError:
        return "none"
    return random.Random(seed).choice(("none", "bubblewrap"))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=180.0, help="how long [180]")
    parser.add_argument("--seed", type=int, help="of all chance [any, and printed]")
    parser.add_argument("--kills", type=int, default=0, help="go on until there were so many")
    parser.add_argument("--isolation", choices=("none", "bubblewrap"), help="[by the seed]")
    parser.add_argument("--keep", action="store_true", help="keep logs also if all is well")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
