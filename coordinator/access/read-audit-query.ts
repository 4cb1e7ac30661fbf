/** What the audit log is asked for, as texts of a page's address or of a command. */

import type { AuditQuery } from "#core/audit";
import { UsageError } from "#core/errors";

/** All as typed; an empty text asks for nothing. */
export interface AuditAsked {
  readonly actor: string;
  readonly action: string;
  readonly target: string;
  /** Days of the calendar, UTC: from the first through the last. */
  readonly since: string;
  readonly until: string;
  readonly beforeId: string;
  readonly limit: string;
}

export const auditLimit = { usual: 50, most: 500 } as const;
const mostText = 300;
const dayMs = 86_400_000;

/** Throws a UsageError that names what is wrong. */
export function readAuditQuery(asked: AuditAsked): AuditQuery {
  const since = dayOf("since", asked.since);
  const until = dayOf("until", asked.until);
  const beforeId = numberOf("beforeId", asked.beforeId, Number.MAX_SAFE_INTEGER);
  return {
    ...textOf("actor", asked.actor),
    ...textOf("action", asked.action),
    ...textOf("target", asked.target),
    ...(since === null ? {} : { since }),
    ...(until === null ? {} : { until: new Date(until.getTime() + dayMs) }),
    ...(beforeId === null ? {} : { beforeId }),
    limit: numberOf("limit", asked.limit, auditLimit.most) ?? auditLimit.usual,
  };
}

function textOf(name: "actor" | "action" | "target", text: string): Partial<AuditQuery> {
  const trimmed = text.trim();
  if (trimmed.length > mostText) throw new UsageError(`${name}: longer than ${mostText} characters`);
  return trimmed === "" ? {} : { [name]: trimmed };
}

function dayOf(name: string, text: string): Date | null {
  if (text.trim() === "") return null;
  const day = new Date(`${text.trim()}T00:00:00.000Z`);
  if (Number.isNaN(day.getTime()) || day.toISOString().slice(0, 10) !== text.trim())
    throw new UsageError(`${name}: "${text.slice(0, 40)}" is no day such as 2026-03-01`);
  return day;
}

function numberOf(name: string, text: string, most: number): number | null {
  if (text.trim() === "") return null;
  const number = Number(text);
  if (!Number.isSafeInteger(number) || number < 1 || number > most)
    throw new UsageError(`${name}: "${text.slice(0, 40)}" is no whole number from 1 to ${most}`);
  return number;
}
