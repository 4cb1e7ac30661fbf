/** Releases: looked at, offered, held; what needs a signature is done with the release commands. */
import { z } from "zod";
import { type FleetPorts, usageFault } from "../fleet/ports.ts";
import type { Actions, Outcome } from "../web/actions.ts";
import type { Views } from "../web/views.ts";
import { defaultSoakMinutes } from "./automatic-staging.ts";
import { releaseLines } from "./release-lines.ts";
import { holdRelease, stageRelease } from "./stage.ts";
import { versionsBody } from "./versions-page.ts";

const section = "/fleet" as const;
const goTo = "/fleet/versions";

const stageBody = z.strictObject({
  /** one, one=NAME, a percentage such as 5%, or all. */
  to: z.string().min(1).max(68),
  /** Offer it anew to crawlers that returned from it. */
  again: z.boolean().default(false),
});
const autoBody = z.strictObject({ soakMinutes: z.int().min(1).max(100_000).default(defaultSoakMinutes) });
const holdBody = z.strictObject({ reason: z.string().min(1).max(500).default("held by an operator") });

export function addVersionRoutes(views: Views, actions: Actions, ports: FleetPorts): void {
  views.add({
    ...{ path: goTo, api: "/api/fleet/versions", section, needs: "fleet-read" },
    view: async ({ now }) => {
      const [releases, docks] = await Promise.all([releaseLines(ports, now), ports.releaseFleet.docks()]);
      const value = {
        releases,
        docks: docks.map((dock) => ({ ...dock, reports: Object.fromEntries(dock.reports) })),
      };
      return {
        status: 200,
        value,
        title: "Versions",
        body: (visit) => versionsBody({ releases, docks, now }, visit),
      };
    },
  });
  const path = (deed: string) => ({
    path: `${goTo}/:version/${deed}`,
    api: `/api/fleet/versions/:version/${deed}`,
    ...{ section, needs: "fleet-write" as const },
  });
  actions.add({
    ...path("stage"),
    body: stageBody,
    fromForm: ({ to = "", again }) => ({ to: to.trim(), again: again === "yes" }),
    act: async ({ body, param, now }) => await stage({ ...body, version: param("version") }, ports, now),
  });
  actions.add({
    ...path("auto"),
    body: autoBody,
    fromForm: () => ({}),
    act: async ({ body, param, now }) =>
      await stage({ version: param("version"), to: "one", ...body }, ports, now),
  });
  actions.add({
    ...path("hold"),
    body: holdBody,
    fromForm: () => ({}),
    act: async ({ body, param, now }) => await hold(param("version"), body.reason, { ports, now }),
  });
}

async function stage(
  wished: Parameters<typeof stageRelease>[0],
  ports: FleetPorts,
  now: Date,
): Promise<Outcome> {
  const staged = await stageRelease(wished, ports, now).catch((error: unknown) =>
    usageFault(error, "Not offered"),
  );
  if ("type" in staged) return staged;
  const { entry, members } = staged;
  const { version, stage: reached, percent, soakMinutes } = entry;
  const whom = members.length === 0 ? "nobody that is docked yet" : members.slice(0, 10).join(", ");
  const words = `${version} is offered to ${whom}${members.length > 10 ? ` and ${members.length - 10} more` : ""}.`;
  const after = { stage: reached, percent, soakMinutes };
  return {
    type: "done",
    value: { version, stage: reached, percent, crawlers: members },
    ...{
      goTo,
      said: words,
      change: { action: "release-staged", target: `release ${version}`, words, after },
    },
  };
}

async function hold(
  version: string,
  reason: string,
  { ports, now }: { readonly ports: FleetPorts; readonly now: Date },
): Promise<Outcome> {
  const fault = await holdRelease(version, reason, ports, now).catch((error: unknown) =>
    usageFault(error, "Not held"),
  );
  if (fault) return fault;
  const words = `${version} is offered to nobody any more; who runs it goes on running it.`;
  const change = { action: "release-held", target: `release ${version}`, words, after: { reason } };
  return { type: "done", value: { version, stage: "none" }, goTo, said: words, change };
}
