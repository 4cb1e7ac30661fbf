/** What the fleet's pages, API and actions work with, and the answers that they share. */
import { z } from "zod";
import { UsageError } from "#core/errors";
import { crawlerName } from "#protocol/invitation";
import type { SignInLinkStore } from "../flows/access-ports.ts";
import type { Secrets } from "../flows/admit-crawler.ts";
import type { ComplaintStore } from "../flows/complaint-ports.ts";
import type { CrawlerStore } from "../flows/crawler-ports.ts";
import type { DomainSetStore } from "../flows/domain-sets/domain-set-ports.ts";
import type { BudgetChange, ChangedBudget, FleetReads } from "../flows/fleet-ports.ts";
import type { InvitationStore } from "../flows/identity-ports.ts";
import type { IncidentStore } from "../flows/incident-ports.ts";
import type { InvitingCoordinator } from "../flows/issue-invitation.ts";
import type { MoveStore } from "../flows/move-ports.ts";
import type { FleetKeys } from "../flows/operator-ports.ts";
import type { OptOutStore } from "../flows/opt-out-ports.ts";
import type { FrontierStore } from "../flows/ports.ts";
import type { ReleaseFleetStore, ReleaseStore } from "../flows/release-ports.ts";
import type { OverviewReads } from "../flows/show-overview.ts";
import type { ActionFault } from "./actions.ts";

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
