/** The state of a running crawler in a plain sentence. */
import { plural } from "./in-words.ts";
import type { StatusReport } from "./status-report.ts";

export function stateWords(
  report: Pick<
    StatusReport,
    "state" | "work" | "pause" | "drain" | "coordinator" | "holdingBack" | "shipping"
  >,
): string {
  const { state, work, pause, drain, coordinator, holdingBack } = report;
  const open = plural(work?.openHosts ?? 0, "site");
  switch (state) {
    case "crawling":
      return `Crawling: ${open} open, ${plural(work?.lastMinute.urls ?? 0, "URL")} in the last minute.`;
    case "waiting":
      return sentence(`Connected, with nothing open${because(holdingBack[0])}`);
    case "not-connected":
      return sentence(`Not connected${because(coordinator.notConnectedBecause)}`);
    case "paused":
      return sentence(`Paused${because(pause?.reason)}`);
    case "draining":
      return sentence(`Draining, to leave for good${because(drain?.reason)}. ${leftWords(report)}`);
    case "not-running":
      return "No crawler runs in this folder.";
  }
}

function leftWords({ work, shipping, coordinator }: Parameters<typeof stateWords>[0]): string {
  const hosts = plural(work?.openHosts ?? 0, "site is", "sites are");
  const results = plural(shipping?.waitingResults ?? 0, "result waits", "results wait");
  const link = coordinator.connectedSince === null ? "; the coordinator is not reached" : "";
  return `${hosts} still open, ${results} for the coordinator${link}`;
}

const because = (reason: string | undefined) => (reason ? `: ${reason}` : "");
const sentence = (text: string) => (/[.!?]$/.test(text) ? text : `${text}.`);
