/** What is known of a connected crawler, for operators. */
import type { CrawlerSession } from "./session.ts";

export interface SessionInfo {
  readonly name: string;
  readonly remoteAddress: string;
  readonly openedAt: Date;
  readonly softwareVersion: string;
  readonly unacknowledgedResults: number;
  readonly waitingMessages: number;
  readonly held: boolean;
  readonly messagesIn: number;
  readonly wireBytesIn: number;
  readonly inflatedBytesIn: number;
  readonly messagesOut: number;
  readonly wireBytesOut: number;
}

/** Null before its hello. */
export function sessionInfoOf(session: CrawlerSession): SessionInfo | null {
  const { hello, remoteAddress, openedAt, unacknowledgedResults, waitingMessages, connection } = session;
  if (!hello) return null;
  const { name, softwareVersion } = hello;
  const held = connection.isHeld;
  return {
    ...{ name, remoteAddress, openedAt, softwareVersion, unacknowledgedResults, waitingMessages, held },
    ...connection.counts,
  };
}
