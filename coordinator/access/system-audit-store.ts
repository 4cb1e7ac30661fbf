/**
 * What the coordinator changes by itself, written to the audit log where a person would ask later who did it: the
 * stores that its duties use, with a note after each such change. A note that cannot be written is logged; what was
 * done is done.
 */
import type { Pool } from "pg";
import type { Change } from "#core/audit";
import type { Log } from "#core/log";
import type { CrawlerMoveRecord, MoveStore } from "../crawlers/move-store.ts";
import { createAuditLog } from "../database/audit-log.ts";
import { isoOrNull } from "../database/cached-read.ts";
import type { CoordinatorState } from "../delegation/state.ts";
import { type OptOut, stateWords } from "../opt-outs/opt-out.ts";
import type { OptOutStore } from "../opt-outs/store.ts";
import type { StageMove } from "../releases/move-stage.ts";
import type { TrustStore } from "../trust/trust-store.ts";

interface OwnChangePorts {
  readonly pool: Pool;
  readonly log: Pick<Log, "error">;
  readonly now: () => Date;
}

/** Never rejects. `actor`: whoever brought it about; left out: the coordinator. */
type NoteChange = (
  change: Change,
  by?: { readonly actor: string; readonly remoteAddress: string | null },
) => Promise<void>;

export function noteOwnChanges({ pool, log, now }: OwnChangePorts): NoteChange {
  const audit = createAuditLog(pool);
  return async (change, by) => {
    const who = by ? ({ ...by, via: "page" } as const) : coordinator;
    try {
      await audit.record({ ...change, ...who, at: now() });
    } catch (error) {
      log.error({ error, action: change.action, target: change.target }, "a change is not in the audit log");
    }
  };
}

const coordinator = { actor: "coordinator", via: "coordinator", remoteAddress: null } as const;

/** A crawler that is not believed any more, and one whose probes are not. */
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

/** A move that is made, and one that failed. */
export function notedMoves(moves: MoveStore, note: NoteChange): MoveStore {
  return {
    ...moves,
    async commit(moveId, now) {
      const record = await moves.find(moveId);
      const isDone = await moves.commit(moveId, now);
      if (isDone && record) await note(moved(record));
      return isDone;
    },
    async fail(moveId, words, now) {
      const isNew = await moves.fail(moveId, words, now);
      const record = isNew ? await moves.find(moveId) : null;
      if (record) await note(moveFailed(record, words));
      return isNew;
    },
  };
}

function moved({ moveId, name, otherName }: CrawlerMoveRecord): Change {
  const words = `${name} has moved to the host of ${otherName}, which no longer exists.`;
  return { action: "crawler-moved", target: name, words, after: { moveId, host: otherName } };
}

function moveFailed({ moveId, name, otherName }: CrawlerMoveRecord, why: string): Change {
  const words = `${name} was not moved to the host of ${otherName}: ${why}.`;
  return { action: "crawler-move-failed", target: name, words, after: { moveId, host: otherName } };
}

/** What sites ask for with the form and prove by DNS or a file, and what lapses. */
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

/** A release that moved on by itself, or was held. */
export function releaseMoved({ version, type, stage, words }: StageMove): Change {
  const action = type === "stop" ? "release-held" : "release-staged";
  const said = {
    stop: `Release ${version} is held: ${words}.`,
    advance: `Release ${version} moved on: ${words}.`,
    elsewhere: `Release ${version} is tried by another crawler first: ${words}.`,
  }[type];
  return { action, target: `release ${version}`, words: said, after: { stage } };
}
