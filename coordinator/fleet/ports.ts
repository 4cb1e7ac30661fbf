/** What the fleet's pages, API and actions work with, and the answers that they share. */
import { z } from "zod";
import type { FleetKeys, SignInLinkStore } from "#core/access-types";
import { UsageError } from "#core/errors";
import type { IncidentStore } from "#core/incidents";
import { crawlerName } from "#protocol/invitation";
import type { InvitingCoordinator } from "../access/invitations.ts";
import type { Secrets } from "../crawlers/admit-crawler.ts";
import type { CrawlerStore } from "../crawlers/crawler.ts";
import type { InvitationStore } from "../crawlers/identity.ts";
import type { MoveStore } from "../crawlers/move-ports.ts";
import type { DomainSetStore } from "../domain-sets/domain-set-store.ts";
import type { FrontierStore } from "../frontier/ports.ts";
import type { ComplaintStore } from "../opt-outs/complaints.ts";
import type { OptOutStore } from "../opt-outs/opt-out.ts";
import type { OverviewReads } from "../overview/overview.ts";
import type { ReleaseFleetStore, ReleaseStore } from "../releases/release-ports.ts";
import type { ActionFault } from "../web/actions.ts";
import type { BudgetChange, ChangedBudget, FleetReads } from "./fleet-ports.ts";

export interface FleetPorts {
  readonly reads: FleetReads;
  readonly overview: OverviewReads;
  readonly crawlers: Pick<CrawlerStore, "drain" | "resume">;
  readonly keys: FleetKeys;
  readonly frontier: Pick<FrontierStore, "returnLeasesOf">;
  readonly invitations: InvitationStore;
  readonly incidents: Pick<IncidentStore, "list">;
  readonly moves: Pick<MoveStore, "ask">;
  readonly releases: Pick<ReleaseStore, "list" | "setStage">;
  readonly releaseFleet: Pick<ReleaseFleetStore, "counts" | "docks" | "watched">;
  readonly optOuts: Pick<OptOutStore, "list" | "request" | "confirm" | "lift">;
  readonly complaints: Pick<ComplaintStore, "add" | "list" | "close">;
  readonly links: Pick<SignInLinkStore, "issue">;
  /** Null: there is no crawler of that name. */
  readonly grantBudget: (name: string, change: BudgetChange) => Promise<ChangedBudget | null>;
  readonly domainSets: Pick<DomainSetStore, "of" | "give">;
  /** False: there is no crawler of that name. */
  readonly restoreTrust: (name: string, now: Date) => Promise<boolean>;
  /** What invitations pin. Throws a UsageError when partners could not reach the coordinator where it listens. */
  readonly coordinator: () => Promise<InvitingCoordinator>;
  /** Where people reach the pages; null: no coordinator has said so yet. */
  readonly webUrl: () => Promise<string | null>;
  readonly secrets: Secrets;
}

export const pagesPerDay = z.int().min(0).max(1_000_000_000);
export const bytesPerDay = z.int().min(0).max(1e15);
export const nothingBody = z.strictObject({});

/** Of a form: an empty field is none; what is no number stays as it is, to be refused by its name. */
export function numberOrNull(text: string | undefined): number | null | string {
  if (text === undefined || text.trim() === "") return null;
  return /^\d+(\.\d+)?$/.test(text.trim()) ? Number(text) : text;
}

/** Of a form: gigabytes as bytes. */
export function bytesOrNull(gigabytes: string | undefined): number | null | string {
  const given = numberOrNull(gigabytes);
  return typeof given === "number" ? Math.round(given * 1e9) : given;
}

export function noCrawler(name: string): ActionFault {
  return {
    type: "fault",
    status: 404,
    title: "Not known",
    words: `There is no crawler named ${name.slice(0, 63)}.`,
  };
}

/** What the operator can mend is said; anything else is ours. */
export function usageFault(error: unknown, title: string, status: 400 | 409 = 409): ActionFault {
  if (!(error instanceof UsageError)) throw error;
  return { type: "fault", status, title, words: error.message };
}

/** A name that can be no crawler's reaches no query. */
export function isName(text: string): boolean {
  return crawlerName.safeParse(text).success;
}
