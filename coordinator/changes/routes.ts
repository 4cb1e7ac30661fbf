/** /changes: what changed on the pages that are crawled, since a cursor: as a page, JSON and CSV. */
import { UsageError } from "#core/errors";
import type { WebPart } from "../web/actions.ts";
import { errorBody } from "../web/page-frame.ts";
import type { AskedView } from "../web/views.ts";
import type { ChangeFeed, CursorFault, FeedRead } from "./change-feed-reads.ts";
import { changesApi } from "./changes-api.ts";
import { changesBody, changesCsv } from "./page.ts";
import { toldChange } from "./page-change.ts";
import {
  type ChangesAsked,
  cursorWords,
  goOnFrom,
  readChangeQuery,
  readChanges,
  readSince,
} from "./read-changes.ts";

export function changeRoutes(feed: ChangeFeed): WebPart {
  return ({ views }) => {
    views.describe({
      path: "/changes",
      operation: changesApi.changes,
      view: async ({ query }) => await changesView(query, feed),
    });
  };
}

async function changesView(query: AskedView["query"], feed: ChangeFeed) {
  const asked = {
    since: query("since"),
    host: query("host"),
    dset: query("dset"),
    prefix: query("prefix"),
    kind: query("kind"),
    limit: query("limit"),
  };
  try {
    const since = readSince(asked.since);
    const found = await readChanges(feed, since, readChangeQuery(asked));
    return found.type === "read" ? shown(asked, found) : refused(Number(since), found);
  } catch (error) {
    if (error instanceof UsageError) return error.message;
    throw error;
  }
}

function shown(asked: ChangesAsked, { changes, next, more }: FeedRead) {
  return {
    status: 200,
    value: { changes: changes.map(toldChange), next, more },
    title: "Changes",
    body: () => changesBody({ asked, changes, next, more }),
    csv: () => changesCsv(changes),
  };
}

/** Of a cursor that cannot be gone on from, with the one that can. */
function refused(since: number, fault: CursorFault) {
  const words = cursorWords(since, fault);
  if (fault.type === "unknown") return words;
  const error = { status: 410, title: "That cursor is no longer valid", words };
  return {
    status: 410,
    value: { error: { status: 410, message: words }, earliest: goOnFrom(fault) },
    title: error.title,
    body: () => errorBody(error),
  };
}
