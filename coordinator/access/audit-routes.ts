/** /audit: every change, who made it, and what was before. For operators. */

import type { AuditEntry, AuditLog } from "#core/audit";
import { UsageError } from "#core/errors";
import type { WebPart } from "../http-server.ts";
import type { CsvTable } from "../web/html.ts";
import type { AskedView, Shown } from "../web/views.ts";
import { type AuditPage, auditBody } from "./audit-page.ts";
import { type AuditAsked, readAuditQuery } from "./read-audit-query.ts";

export interface AuditRoutePorts {
  readonly audit: Pick<AuditLog, "list">;
}

export function auditRoutes(ports: AuditRoutePorts): WebPart {
  return ({ views }) => {
    views.add({
      path: "/audit",
      api: "/api/audit",
      section: "/audit",
      needs: "audit-read",
      view: async (asked) => await auditView(asked, ports),
    });
  };
}

async function auditView({ query }: AskedView, { audit }: AuditRoutePorts): Promise<Shown | string> {
  const asked: AuditAsked = {
    actor: query("actor"),
    action: query("action"),
    target: query("target"),
    since: query("since"),
    until: query("until"),
    beforeId: query("beforeId"),
    limit: query("limit"),
  };
  try {
    const found = await audit.list(readAuditQuery(asked));
    const page: AuditPage = { asked, ...found };
    return {
      status: 200,
      value: found,
      title: "Audit log",
      body: () => auditBody(page),
      csv: () => auditTable(found.entries),
    };
  } catch (error) {
    if (error instanceof UsageError) return error.message;
    throw error;
  }
}

function auditTable(entries: readonly AuditEntry[]): CsvTable {
  const columns = [
    "entryId",
    "at",
    "actor",
    "via",
    "remoteAddress",
    "action",
    "target",
    "words",
    "before",
    "after",
  ];
  const jsonOf = (value: unknown) => (value === undefined ? null : JSON.stringify(value));
  return {
    columns,
    rows: entries.map((one) => [
      one.entryId,
      one.at.toISOString(),
      one.actor,
      one.via,
      one.remoteAddress,
      one.action,
      one.target,
      one.words,
      jsonOf(one.before),
      jsonOf(one.after),
    ]),
  };
}
