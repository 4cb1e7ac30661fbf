/** Records committed and failed moves in the audit log. */
import type { Change } from "#core/audit";
import type { NoteChange } from "../../database/own-changes-store.ts";
import type { CrawlerMoveRecord, MoveStore } from "./move-store.ts";

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
