/**
 * Serves HTTP on HOME/control.sock (a Unix socket, mode 0600). The crawler's own user and root can view and control the
 * crawler, nobody else can, and nothing goes over a network. A socket that was left behind is replaced only if nobody answers
 * on it.
 *
 *   GET  /status.json   the report            GET /status.txt   the same for a terminal
 *   POST /pause?reason= · /resume · /drain?reason=
 */

import { closeSync, openSync, rmSync } from "node:fs";
import {
  type ClientRequest,
  createServer,
  type IncomingMessage,
  request,
  type Server,
  type ServerResponse,
} from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { NearcrawlError } from "#core/errors";
import type { CrawlerLog } from "../core/log.ts";
import type { StatusReport } from "./status-report.ts";
import { statusText } from "./status-text.ts";

export interface Steered {
  report(): StatusReport;
  /** These methods throw the system's error if the change cannot be saved. */
  pause(reason: string): void;
  resume(): void;
  drain(reason: string): void;
}

interface ControlSettings {
  readonly home: string;
  readonly crawler: Steered;
  readonly log: CrawlerLog;
  /** The local page's URL with its key, for whoever may read the socket. Null if there is no page. */
  readonly pageUrl?: () => string | null;
}

const requestMs = 5000;
const mostConnections = 16;
const mostHeaderBytes = 8 * 1024;
const answersMs = 1000;
const ownerOnly = 0o177;
const byHand = "by the control socket";

/** A crawler whose socket cannot be opened still crawls and logs the reason. */
export async function openControl(settings: ControlSettings): Promise<{ close(): Promise<void> }> {
  const { home, log } = settings;
  const control = openControlPath(home);
  const server = controlServer(settings);
  try {
    if (control.path === null)
      throw new Error("the folder's path is too long for a socket: choose a shorter one");
    if (await answers(control.path)) throw new Error("another crawler answers on it");
    rmSync(controlFile(home), { force: true });
    await listen(server, control.path);
  } catch (error) {
    log.warn(
      { socket: controlFile(home), error },
      "no control socket: status, pause and drain reach this crawler by its files alone",
    );
  }
  let closed: Promise<void> | null = null;
  return {
    close: () => {
      closed ??= endServer(server).then(() => control.close());
      return closed;
    },
  };
}

async function endServer(server: Server): Promise<void> {
  server.closeAllConnections();
  if (server.listening) await new Promise<void>((resolve) => server.close(() => resolve()));
}

const serverBounds = {
  maxHeaderSize: mostHeaderBytes,
  headersTimeout: requestMs,
  requestTimeout: requestMs,
  keepAliveTimeout: 1000,
  connectionsCheckingInterval: 1000,
} as const;

/**
 * Makes a server on which a failing request affects only itself: an exception becomes a 500. Node answers invalid HTTP (400)
 * and closes upgrades and tunnels, for which there is no listener.
 */
export function guardedServer(settings: {
  readonly mostConnections: number;
  readonly answer: (request: IncomingMessage, response: ServerResponse) => void | Promise<void>;
  readonly onFault: (error: unknown) => void;
}): Server {
  const server = createServer(serverBounds, async (request, response) => {
    const fail = (error: unknown) => {
      settings.onFault(error);
      if (response.headersSent) response.destroy();
      else reply(response, 500, error instanceof Error ? error.message : String(error));
    };
    request.on("error", () => response.destroy());
    response.on("error", () => response.destroy());
    try {
      await settings.answer(request, response);
    } catch (error) {
      fail(error);
    }
  });
  server.maxConnections = settings.mostConnections;
  return server;
}

/**
 * Compares paths as text, because a request target need not be a URL (`//`, `*`, `http://x:99999/`) and `new URL` throws for
 * some of them.
 */
export function targetOf({ url = "" }: IncomingMessage): {
  readonly path: string;
  readonly query: URLSearchParams;
} {
  const mark = url.indexOf("?");
  const path = mark < 0 ? url : url.slice(0, mark);
  return { path, query: new URLSearchParams(mark < 0 ? "" : url.slice(mark)) };
}

function controlServer({ crawler, log, pageUrl = () => null }: ControlSettings): Server {
  const report = () => ({ ...crawler.report(), pageUrl: pageUrl() });
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    const { path, query } = targetOf(request);
    const route = `${request.method} ${path}`;
    const steer = steering[route];
    if (steer !== undefined) {
      steer(crawler, (query.get("reason") || byHand).slice(0, 300));
      replyJson(response, JSON.stringify(report()));
    } else if (route === "GET /status.json") {
      replyJson(response, JSON.stringify(report()));
    } else if (route === "GET /status.txt") {
      reply(response, 200, statusText(report()).join("\n"));
    } else {
      reply(response, 404, "there is no such thing here");
    }
  };
  const onFault = (error: unknown) => log.warn({ error }, "what was asked on the control socket failed");
  const server = guardedServer({ mostConnections, answer, onFault });
  return server.on("error", (error) => log.warn({ error }, "the control socket has failed"));
}

const steering: Readonly<Record<string, (crawler: Steered, reason: string) => void>> = {
  "POST /pause": (crawler, reason) => crawler.pause(reason),
  "POST /resume": (crawler) => crawler.resume(),
  "POST /drain": (crawler, reason) => crawler.drain(reason),
};

export function replyJson(response: ServerResponse, text: string): void {
  response.writeHead(200, { "content-type": "application/json; charset=utf-8", "cache-control": "no-store" });
  response.end(`${text}\n`);
}

export function reply(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store" });
  response.end(`${text}\n`);
}

/** `listen` creates the socket with its final permissions, so that nobody else can connect even briefly. */
function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject).once("listening", () => {
      server.off("error", reject);
      resolve();
    });
    const before = process.umask(ownerOnly);
    try {
      server.listen(path);
    } finally {
      process.umask(before);
    }
  });
}

/** A socket on which nobody answers is stale. */
function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    const done = (listens: boolean) => {
      clearTimeout(late);
      socket.destroy();
      resolve(listens);
    };
    const late = setTimeout(() => done(true), answersMs);
    socket.once("connect", () => done(true)).once("error", () => done(false));
  });
}

// Resolves the path of HOME/control.sock. Socket paths may have 103 bytes (sun_path of macOS, while Linux has 107). For deeper
// folders, Linux can go through an open descriptor, /proc/self/fd/N. Other systems cannot, and the caller reports it.

const mostPathBytes = 103;
const fileName = "control.sock";

interface ControlPath {
  /** The path to use until `close`. Null if it is too long for this system. */
  readonly path: string | null;
  close(): void;
}

const controlFile = (home: string) => join(home, fileName);

function openControlPath(home: string): ControlPath {
  const plain = controlFile(home);
  if (Buffer.byteLength(plain) <= mostPathBytes) return { path: plain, close: () => {} };
  if (process.platform !== "linux") return { path: null, close: () => {} };
  const folder = openSync(home, "r");
  return { path: `/proc/self/fd/${folder}/${fileName}`, close: () => closeSync(folder) };
}

// Asks a folder's running crawler over its control socket, with limits on the answer's size and time.

const answerMs = 5000;
const mostAnswerBytes = 1024 * 1024;

/** Exit code 1: the socket exists but may not be used, or the answer is invalid. */
export class ControlError extends NearcrawlError {
  readonly code = "NC_CONTROL";
}

export interface Asked {
  readonly method: "GET" | "POST";
  readonly path: string;
}

/** Returns null if nobody listens, so no crawler is running. Throws a ControlError. */
export async function askCrawler(home: string, { method, path }: Asked): Promise<string | null> {
  const control = openPathOrNull(home);
  if (control === null || control.path === null) return null;
  try {
    const answer = await exchange(request({ socketPath: control.path, method, path, agent: false }));
    if (answer.status === 200) return answer.text;
    throw new ControlError(`the crawler answered ${answer.status}: ${answer.text.slice(0, 300)}`);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ECONNREFUSED" || code === "ENOTSOCK") return null;
    if (code === "EACCES" || code === "EPERM")
      throw new ControlError(
        `${home}/control.sock belongs to another user: run this as the crawler's user, or as root`,
        { cause: error },
      );
    if (error instanceof ControlError) throw error;
    throw new ControlError(`the crawler does not answer: ${(error as Error).message}`, { cause: error });
  } finally {
    control.close();
  }
}

function openPathOrNull(home: string): ReturnType<typeof openControlPath> | null {
  try {
    return openControlPath(home);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw new ControlError(`${home} cannot be opened: ${(error as Error).message}`, { cause: error });
  }
}

function exchange(asking: ClientRequest): Promise<{ readonly status: number; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const late = setTimeout(
      () => asking.destroy(new Error(`no answer within ${answerMs / 1000} s`)),
      answerMs,
    );
    const fail = (error: Error) => {
      clearTimeout(late);
      reject(error);
    };
    asking.on("error", fail).on("response", (response) => {
      const pieces: Buffer[] = [];
      let bytes = 0;
      response
        .on("data", (piece: Buffer) => {
          bytes += piece.length;
          pieces.push(piece);
          if (bytes > mostAnswerBytes) asking.destroy(new Error(`more than ${mostAnswerBytes} bytes`));
        })
        .on("error", fail)
        .on("end", () => {
          clearTimeout(late);
          resolve({ status: response.statusCode ?? 0, text: Buffer.concat(pieces).toString("utf8") });
        });
    });
    asking.end();
  });
}
