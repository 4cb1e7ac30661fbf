/** Records in the audit log when the coordinator distrusts a crawler. */
import type { NoteChange } from "../../database/own-changes-store.ts";
import type { CoordinatorState } from "../../place/delegation/state.ts";
import type { TrustStore } from "./trust-store.ts";

export function notedTrust(
  trust: TrustStore,
  state: Pick<CoordinatorState, "crawler">,
  note: NoteChange,
): TrustStore {
  const nameOf = (crawlerId: Parameters<CoordinatorState["crawler"]>[0]) =>
    state.crawler(crawlerId)?.name ?? `crawler ${crawlerId}`;
  return {
    ...trust,
    async distrust(distrust) {
      const done = await trust.distrust(distrust);
      const { crawlerId, words, drain } = distrust;
      const target = nameOf(crawlerId);
      const kept = drain === null ? "it keeps its subnets" : "its subnets go to others";
      const after = { isDrained: drain !== null, pagesFetchedAgain: done.dueAgain };
      const said = `${target} is no longer trusted, and ${kept}: ${words}.`;
      if (done.isNew) await note({ action: "crawler-distrusted", target, words: said, after });
      return done;
    },
    async doubtProbes(doubt) {
      const isNew = await trust.doubtProbes(doubt);
      const target = nameOf(doubt.crawlerId);
      const said = `${target}'s probe reports are no longer trusted: ${doubt.words}.`;
      if (isNew) await note({ action: "crawler-probes-doubted", target, words: said });
      return isNew;
    },
  };
}
