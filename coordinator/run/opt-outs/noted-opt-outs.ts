/** Records opt-outs that no operator made or ended in the audit log. */
import type { Change } from "#core/audit";
import { isoOrNull } from "../../database/cached-read.ts";
import type { NoteChange } from "../../database/own-changes-store.ts";
import { type OptOut, stateWords } from "./opt-out.ts";
import type { OptOutStore } from "./store.ts";

/** Requests by the form with proof by DNS or file, and lapses. */
export function notedOptOuts(optOuts: OptOutStore, note: NoteChange): OptOutStore {
  return {
    ...optOuts,
    async request(request, now) {
      const optOut = await optOuts.request(request, now);
      const by = { actor: "anybody", remoteAddress: request.requester };
      if (request.source === "form") await note(optedOut(optOut), by);
      return optOut;
    },
    async confirm(optOutId, by, now) {
      const optOut = await optOuts.confirm(optOutId, by, now);
      if (optOut && by === "site") await note(confirmed(optOut));
      return optOut;
    },
    async lapse(now) {
      const count = await optOuts.lapse(now);
      const words = `${count} lapsed: nobody confirmed in time.`;
      if (count > 0) await note({ action: "opt-outs-lapsed", target: null, words, after: { count } });
      return count;
    },
  };
}

function optedOut({ optOutId, target, state, deletesAt }: OptOut): Change {
  const words = `Somebody opted ${target} out with the form (${stateWords({ state, deletesAt })}).`;
  return { action: "opted-out", target, words, after: { optOutId, state, deletesAt: isoOrNull(deletesAt) } };
}

function confirmed({ optOutId, target, state }: OptOut): Change {
  const words = `${target} proved its opt-out, in its DNS or by a file: it is permanent.`;
  return { action: "opt-out-confirmed", target, words, after: { optOutId, state } };
}
