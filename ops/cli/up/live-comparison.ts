/**
 * `--compare live`: each policy runs on the same world, one after the other, each in a schema of its own. The
 * computed rows of the last run stand beside the live ones.
 */

import { policyNames } from "#coordinator/delegation/policies/policies";
import { type EmulatedRun, type EmulatedRunOptions, runEmulated } from "./emulated-run.ts";
import { inTableOrder, type PolicyRow } from "./policy-comparison.ts";

/** The last one run is the policy that was asked for; its web page is the one that stays up. */
export async function comparePoliciesLive(options: Omit<EmulatedRunOptions, "schema">): Promise<EmulatedRun> {
  const asked = options.parameters.policy;
  const rows: PolicyRow[] = [];
  for (const policy of policyNames.filter((name) => name !== asked)) {
    options.voice.note(`\npolicy ${policy}:`);
    const parameters = { ...options.parameters, policy };
    const run = await runEmulated({ ...options, parameters, schema: `world_${policy}` });
    rows.push(...run.policies.filter((row) => row.source === "live"));
    if (!run.outcome.finished) return run;
    await run.stop();
  }
  options.voice.note(`\npolicy ${asked}:`);
  const run = await runEmulated({ ...options, schema: "world" });
  return { ...run, policies: inTableOrder([...rows, ...run.policies]) };
}
