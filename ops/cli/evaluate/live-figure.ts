/**
 * The comparison on sockets: coordinator, crawlers and sites of the emulated Internet, each policy in turn, and
 * beside each live row what the simulator computes for the same world.
 */
import { markdownTable } from "../../evaluate/markdown.ts";
import { type ContextOptions, commandContext } from "../command-context.ts";
import { untilAskedToStop } from "../until-asked-to-stop.ts";
import { comparePoliciesLive } from "../up/live-comparison.ts";
import type { PolicyRow } from "../up/policy-comparison.ts";
import type { WorldParameters } from "../up/run-parameters.ts";
import { createRunVoice } from "../up/run-voice.ts";
import type { EvaluatedFigure } from "./compute-figures.ts";

/** Null: a person stopped it before its end. */
export async function compareLive(
  parameters: WorldParameters,
  options: ContextOptions,
): Promise<EvaluatedFigure | null> {
  const run = await comparePoliciesLive({
    context: commandContext(options),
    parameters,
    port: 0,
    fresh: true,
    // Standard output is the evaluation's own.
    voice: createRunVoice({ json: true }),
    stopRequested: untilAskedToStop(),
  });
  await run.stop();
  if (!run.outcome.finished) return null;
  const { policies } = run;
  const section = { text: textOf(policies, parameters), pictures: [], data: { parameters, policies } };
  return { name: "live", title: "Live: the same policies on sockets", section };
}

function textOf(policies: readonly PolicyRow[], { sites, crawlers, seed }: WorldParameters): string {
  const rows = policies.map((row) => [
    row.policy,
    row.source,
    String(row.subnets),
    row.bestPct.toFixed(1),
    row.within5msPct.toFixed(1),
    row.probesPerUrl.toFixed(2),
    row.meanRttMs.toFixed(1),
    row.meanDownloadMs === null ? "–" : row.meanDownloadMs.toFixed(0),
  ]);
  return [
    `${crawlers} crawler processes, ${sites} sites, seed ${seed}: coordinator, crawlers and sites on this machine, the emulated Internet between them; each policy from an empty database. Beside each, the simulator on the same world. Shares are of subnets; the best crawler of one has the least mean RTT over its sites.`,
    "",
    markdownTable(
      [
        "policy",
        "figures",
        "subnets",
        "the best, %",
        "within 5 ms, %",
        "probes per URL",
        "mean RTT, ms",
        "a page, ms",
      ],
      rows,
    ),
    "",
    "Live rounds run several at a time, the simulator's one after the other: a live round knows less when it begins, and probes more. Downloads are measured live; the computed rows model those of the last run's pages.",
  ].join("\n");
}
