/**
 * What can be looked at: each view is read once and shown as a page, or as JSON at the same address with
 * `Accept: application/json` and under /api/. openapi.json describes them.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { answerWho } from "../flows/answer-who.ts";
import type { CrawlScope, NameResolver } from "../flows/ports.ts";
import { maxQuestionLength } from "../flows/read-question.ts";
import { maxSearchLength, type SearchAnswer, type SearchReads, searchPages } from "../flows/search-pages.ts";
import { type Overview, type OverviewReads, showCrawler } from "../flows/show-overview.ts";
import type { WhoAnswer } from "../flows/who-answer.ts";
import type { WhoReads } from "../flows/who-reads.ts";
import { verdictOf } from "../flows/who-words.ts";
import { crawlerBody } from "../web/crawler-page.ts";
import type { Html } from "../web/html.ts";
import { overviewBody } from "../web/overview-page.ts";
import { type PageFrame, pageFrame } from "../web/page-frame.ts";
import { searchBody } from "../web/search-page.ts";
import { whoBody, whoStart } from "../web/who-page.ts";
import { sendError, wantsJson } from "./http-guard.ts";

export interface ViewPorts {
  readonly reads: WhoReads & SearchReads & OverviewReads;
  readonly resolver: NameResolver;
  readonly scope: CrawlScope;
  readonly overview: () => Promise<Overview>;
  readonly now: () => Date;
  readonly version: string;
}

interface Shown {
  readonly status: number;
  readonly value: unknown;
  readonly title: string;
  readonly body: () => Html;
}

/** Null: there is nothing at this address. A string: why this cannot be asked. */
type View = (request: FastifyRequest) => Promise<Shown | string | null>;

export function addViews(app: FastifyInstance, ports: ViewPorts): void {
  const add = (path: string, api: string, section: PageFrame["section"], view: View) => {
    const handler = async (request: FastifyRequest, reply: FastifyReply) =>
      send(request, reply, { shown: await view(request), section, version: ports.version });
    app.get(path, handler);
    app.get(api, handler);
  };
  add("/", "/api/overview", "/", () => overviewView(ports));
  add("/crawlers/:name", "/api/crawlers/:name", null, (request) => crawlerView(request, ports));
  add("/who", "/api/who", "/who", (request) => whoView(request, ports));
  add("/search", "/api/search", "/search", (request) => searchView(request, ports));
}

async function send(
  request: FastifyRequest,
  reply: FastifyReply,
  view: {
    readonly shown: Shown | string | null;
    readonly section: PageFrame["section"];
    readonly version: string;
  },
): Promise<FastifyReply> {
  const { shown, section, version } = view;
  if (shown === null) {
    return sendError(
      request,
      reply,
      { status: 404, title: "Not known", words: "There is nothing of this name." },
      version,
    );
  }
  if (typeof shown === "string") {
    return sendError(
      request,
      reply,
      { status: 400, title: "That cannot be answered", words: shown },
      version,
    );
  }
  reply.code(shown.status).header("cache-control", "no-store").header("vary", "accept");
  if (wantsJson(request)) return reply.send(shown.value);
  const json = shown.value === null ? undefined : `/api${request.url === "/" ? "/overview" : request.url}`;
  const frame = { title: shown.title, section, version, body: shown.body(), ...(json ? { json } : {}) };
  return reply.type("text/html; charset=utf-8").send(pageFrame(frame));
}

async function overviewView(ports: ViewPorts): Promise<Shown> {
  const value = await ports.overview();
  return { status: 200, value, title: "Overview", body: () => overviewBody(value) };
}

async function crawlerView(request: FastifyRequest, ports: ViewPorts): Promise<Shown | null> {
  const { name } = request.params as { name: string };
  const value = await showCrawler(ports.reads, name);
  return value && { status: 200, value, title: value.crawler.name, body: () => crawlerBody(value) };
}

async function whoView(request: FastifyRequest, ports: ViewPorts): Promise<Shown | string> {
  const question = queryText(request, "q");
  if (question.length > maxQuestionLength)
    return `The question is longer than ${maxQuestionLength} characters.`;
  if (question.trim() === "") {
    if (wantsJson(request)) return "Ask with ?q=, for example /api/who?q=www.example.org";
    return { status: 200, value: null, title: "Who crawls it", body: whoStart };
  }
  const value: WhoAnswer = await answerWho(question, ports, ports.now());
  return { status: value.found ? 200 : 404, value, title: verdictOf(value), body: () => whoBody(value) };
}

async function searchView(request: FastifyRequest, ports: ViewPorts): Promise<Shown | string> {
  const words = queryText(request, "q");
  if (words.length > maxSearchLength) return `The words are longer than ${maxSearchLength} characters.`;
  if (words === "" && !wantsJson(request)) {
    return { status: 200, value: null, title: "Search", body: () => searchBody(null) };
  }
  const value: SearchAnswer = await searchPages(ports.reads, words, {
    limit: queryNumber(request, "limit", 10),
    offset: queryNumber(request, "offset", 0),
    language: queryText(request, "language"),
    host: queryText(request, "host"),
  });
  return { status: 200, value, title: `${value.words} · Search`, body: () => searchBody(value) };
}

/** The first value of that name; a name given twice is a list in the query. */
function queryText(request: FastifyRequest, name: string): string {
  const value = (request.query as Record<string, string | string[] | undefined>)[name];
  return (Array.isArray(value) ? value[0] : value) ?? "";
}

function queryNumber(request: FastifyRequest, name: string, otherwise: number): number {
  const text = queryText(request, name);
  return /^\d{1,6}$/.test(text) ? Number(text) : otherwise;
}
