/** /changes: what changed on the pages that are crawled, since a cursor: as a page, JSON, CSV and server-sent events. */

import type { FastifyReply, FastifyRequest } from "fastify";
import { UsageError } from "#core/errors";
import type { Log } from "#core/log";
import { refusalFor } from "../web/access.ts";
import type { WebPart } from "../web/actions.ts";
import { EventStreams } from "../web/event-streams.ts";
import { sendError } from "../web/guard.ts";
import { errorBody, type PageError } from "../web/page-frame.ts";
import { type AskedView, queryOf, sendRefusal } from "../web/views.ts";
import { type ChangeFeed, type CursorFault, cursorFault, type FeedRead } from "./change-feed-reads.ts";
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
  startOf,
} from "./read-changes.ts";
import { ChangeStream, mostChangeReaders } from "./stream-routes.ts";

interface ChangeRoutePorts {
  readonly feed: ChangeFeed;
  readonly log: Log;
  readonly version: string;
}

const mostReadersOfAddress = 30;

export function changeRoutes(ports: ChangeRoutePorts): WebPart {
  return ({ app, views, access }) => {
    const stream = new ChangeStream({
      feed: ports.feed,
      onError: (error) => ports.log.warn({ error }, "changes could not be read for their listeners"),
      nowMs: () => performance.now(),
    });
    const streams = new EventStreams({
      most: mostChangeReaders,
      mostOfAddress: mostReadersOfAddress,
      tooMany,
    });
    app.addHook("preClose", async () => stream.close());
    const events = async (request: FastifyRequest, reply: FastifyReply) =>
      await follow(request, reply, { ...ports, stream, streams });
    views.describe({
      path: "/changes",
      operation: changesApi.changes,
      view: async ({ query }) => await changesView(query, ports.feed),
      events,
    });
    app.get("/api/changes/stream", { config: { boundedElsewhere: true } }, async (request, reply) => {
      const refusal = await refusalFor(access, request, "read");
      if (refusal) return sendRefusal(request, reply, refusal, ports);
      return await events(request, reply);
    });
  };
}

async function changesView(query: AskedView["query"], feed: ChangeFeed) {
  const asked = askedOf(query);
  try {
    const since = readSince(asked.since);
    const found = await readChanges(feed, since, readChangeQuery(asked));
    return found.type === "read" ? shown(asked, found) : refused(Number(since), found);
  } catch (error) {
    if (error instanceof UsageError) return error.message;
    throw error;
  }
}

function askedOf(query: (name: string) => string): ChangesAsked {
  return {
    since: query("since"),
    host: query("host"),
    dset: query("dset"),
    prefix: query("prefix"),
    kind: query("kind"),
    limit: query("limit"),
  };
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
  const { words } = cursorWords(since, fault);
  if (fault.type === "unknown") return words;
  const error = { ...goneError, words };
  return {
    status: 410,
    value: { error: { status: 410, message: words }, earliest: goOnFrom(fault) },
    title: error.title,
    body: () => errorBody(error),
  };
}

/** Where the stream begins is settled before its head goes out, so that a wrong cursor is a status. */
async function follow(
  request: FastifyRequest,
  reply: FastifyReply,
  {
    feed,
    version,
    stream,
    streams,
  }: ChangeRoutePorts & { readonly stream: ChangeStream; readonly streams: EventStreams },
): Promise<FastifyReply | undefined> {
  const asked = askedOf((name) => queryOf(request, name));
  try {
    const since = readSince(lastEventId(request) ?? asked.since);
    const { filter } = readChangeQuery(asked);
    const at = await startOf(since, feed);
    const fault = cursorFault(at, await feed.state());
    if (fault !== null) {
      const { status, words } = cursorWords(at, fault);
      if (status === 400) throw new UsageError(words);
      return sendError(request, reply, { ...goneError, words }, { version });
    }
    const response = streams.take(request, reply, { isFull: stream.full, version });
    if (response !== null) stream.listen(response, { at, filter });
    return reply;
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    return sendError(request, reply, { ...cannotBeAnswered, words: error.message }, { version });
  }
}

/** What a browser sends when it comes back; it knows better than the address that it began with. */
function lastEventId(request: FastifyRequest): string | null {
  const id = request.headers["last-event-id"];
  return typeof id === "string" && id !== "" ? id : null;
}

const goneError: Omit<PageError, "words"> = { status: 410, title: "That cursor is no longer valid" };
const cannotBeAnswered: Omit<PageError, "words"> = { status: 400, title: "That cannot be answered" };
const tooMany: PageError = {
  status: 503,
  title: "Too many readers",
  words:
    "The change feed has its maximum of readers. Poll /api/changes?since=CURSOR instead; nothing is missed.",
};
