/**
 * Times HTTP HEAD on one keep-alive connection, several times, from writing the request to the first byte of the answer. It
 * uses the socket directly for precise timestamps, so it must validate the request itself.
 */
import type net from "node:net";
import { hostInUrl, isHostName } from "#core/ip/url-host";
import { Failure, failureOf } from "../core/failure.ts";
import type { SignRequest } from "../fetch/sign-request.ts";

const maxHeadBytes = 32 * 1024;

interface HeadSettings {
  readonly host: string;
  readonly port: number;
  readonly secure: boolean;
  readonly userAgent: string;
  readonly tries: number;
  readonly sign?: SignRequest | undefined;
  readonly mayGoOn?: () => boolean;
  /** How long an answer that is noticed now may have been waiting. */
  readonly lateMs: () => number;
}

export interface TimedTry {
  readonly rttMs: number;
  /** How much earlier than noticed the answer may have arrived. */
  readonly lateMs: number;
}

interface HeadTimes {
  readonly tries: readonly TimedTry[];
  /** Why HEAD does not work there, in which case the prober falls back to TCP connect. Null if it works. */
  readonly refused: string | null;
}

/**
 * Throws a Failure before writing anything if the request would be invalid. If the site closes the connection, stops early and
 * keeps the measurements. The caller closes the socket.
 */
export async function timeHeads(socket: net.Socket, settings: HeadSettings): Promise<HeadTimes> {
  const tries: TimedTry[] = [];
  for (let tried = 0; tried < settings.tries; tried++) {
    const request = headRequest(settings);
    try {
      const answer = await exchange(socket, request, settings.lateMs);
      if (answer.status === null)
        return { tries, refused: tries.length > 0 ? null : "the answer is not HTTP" };
      if (answer.status === 405 || answer.status === 501) {
        return { tries: [], refused: `HEAD is answered with ${answer.status}` };
      }
      tries.push({ rttMs: answer.rttMs, lateMs: answer.lateMs });
      const rttsMs = tries.map(({ rttMs }) => rttMs);
      if (!answer.keptOpen || triesAgree(rttsMs) || settings.mayGoOn?.() === false) break;
    } catch (error) {
      if (tries.length > 0) break;
      const failure = failureOf(error);
      if (failure.code !== "connection-lost") throw failure;
      return { tries, refused: "the site closed the connection on HEAD" };
    }
  }
  return { tries, refused: null };
}

function headRequest(settings: HeadSettings): string {
  if (!isHostName(settings.host)) throw new Failure("internal", "the host to ask is no host's name");
  const usual = settings.secure ? 443 : 80;
  const name = hostInUrl(settings.host);
  const authority = settings.port === usual ? name : `${name}:${settings.port}`;
  const signed = settings.sign?.(new URL(`${settings.secure ? "https" : "http"}://${authority}`)) ?? {};
  const lines = [
    "HEAD / HTTP/1.1",
    `Host: ${authority}`,
    `User-Agent: ${settings.userAgent}`,
    "Accept: */*",
    ...Object.entries(signed).map(([field, value]) => `${field}: ${value}`),
    "Connection: keep-alive",
  ];
  if (!lines.every((line) => /^[\x20-\x7e]+$/.test(line))) {
    throw new Failure("internal", "a header field holds what cannot stand in it");
  }
  return `${lines.join("\r\n")}\r\n\r\n`;
}

interface HeadAnswer extends TimedTry {
  readonly status: number | null;
  readonly keptOpen: boolean;
}

function exchange(socket: net.Socket, request: string, late: () => number): Promise<HeadAnswer> {
  return new Promise((resolve, reject) => {
    let firstByteMs: number | null = null;
    let lateMs = 0;
    let head = "";
    const stop = () => socket.off("data", onData).off("error", onError).off("close", onClose);
    const onData = (chunk: Buffer) => {
      if (firstByteMs === null) {
        firstByteMs = performance.now();
        lateMs = Math.min(late(), firstByteMs - sentMs);
      }
      head += chunk.toString("latin1");
      const end = head.indexOf("\r\n\r\n");
      if (end < 0 && head.length <= maxHeadBytes) return;
      stop();
      resolve(judge(head, end, { rttMs: firstByteMs - sentMs, lateMs }));
    };
    const onError = (error: Error) => {
      stop();
      reject(error);
    };
    const onClose = () => {
      stop();
      if (firstByteMs === null) reject(new Failure("connection-lost", "closed without an answer"));
      else resolve(judge(head, -1, { rttMs: firstByteMs - sentMs, lateMs }));
    };
    socket.on("data", onData).on("error", onError).on("close", onClose);
    if (socket.destroyed) return onClose();
    socket.write(request);
    const sentMs = performance.now();
  });
}

function judge(head: string, end: number, timed: TimedTry): HeadAnswer {
  const status = /^HTTP\/1\.[01] (\d{3})/.exec(head)?.[1];
  if (status === undefined || end < 0) return { ...timed, status: null, keptOpen: false };
  const isClean = end + 4 === head.length && !/^connection:[ \t]*close/im.test(head.slice(0, end));
  return { ...timed, status: Number(status), keptOpen: isClean && !head.startsWith("HTTP/1.0") };
}

// Decides when enough tries were made. Noise only adds to a round trip, so the smallest is the best. If a second one is as
// close as clocks and paths allow, a third adds nothing. A quiet path takes two tries, a noisy one the maximum.

/** Two tries are equal if they differ by at most the larger of these. */
const sameWithinMs = 0.75;

const sameWithinShare = 0.02;

export function triesAgree(rttsMs: readonly number[]): boolean {
  const [smallest, second] = rttsMs.toSorted((a, b) => a - b);
  if (smallest === undefined || second === undefined) return false;
  return second - smallest <= Math.max(sameWithinMs, sameWithinShare * smallest);
}
