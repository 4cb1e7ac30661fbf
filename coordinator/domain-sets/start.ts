/**
 * What the coordinator does by the clock for domain sets: hosts that their subnet's crawler may not have go to the
 * nearest that may, and hosts' languages are kept by what their pages turn out to be in.
 */

import type { HostHash } from "#core/ids";
import type { Log } from "#core/log";
import type { Timekeeper } from "#core/scheduler";
import { urlKeyOf } from "#core/url-key";
import type { CoordinatorConfig } from "../config.ts";
import {
  type DelegateBySetsPorts,
  delegateBySets,
  HostLanguages,
  partitionsOfFleet,
} from "../delegation/overrides/assign-by-sets.ts";
import type { ResultBatch } from "../results/take-results.ts";
import type { DomainSetStore } from "./domain-set-store.ts";

export interface DomainSetDuties {
  /** Results came in: what language their hosts speak may have changed. */
  note(batch: Pick<ResultBatch, "results">): void;
  pass(): Promise<void>;
  start(): void;
  stop(): void;
}

/** The name by which the duty can be hurried. */
export const delegateBySetsDuty = "delegate-by-domain-sets";
const everyMs = 5000;

export function domainSetDuties(
  given: Omit<DelegateBySetsPorts, "partitionOf" | "settings"> & {
    readonly domainSets: DomainSetStore;
    readonly settings: () => DelegateBySetsPorts["settings"];
    readonly timekeeper: Pick<Timekeeper, "every" | "hurry">;
    readonly log: Log;
  },
  config: Pick<CoordinatorConfig, "domainSets">,
): DomainSetDuties {
  let isStopping = false;
  const partitionOf = partitionsOfFleet(given.state, config);
  const languages = new HostLanguages(given.domainSets);
  const asksLanguages = () =>
    given.state.crawlers.some(({ crawlerId }) =>
      partitionOf(crawlerId).some((layer) => layer.some(({ languages: asked }) => asked.size > 0)),
    );
  const duties: DomainSetDuties = {
    note: (batch) => languages.note(hostsWithPages(batch)),
    pass: async () => {
      if (asksLanguages()) await languages.pass();
      const ports = { ...given, settings: given.settings(), partitionOf, isStopping: () => isStopping };
      const { moved, ended } = await delegateBySets(ports);
      if (moved + ended === 0) return;
      given.log.info({ moved, ended }, "hosts went where their domain sets are");
      given.timekeeper.hurry(delegateBySetsDuty);
    },
    start: () => given.timekeeper.every(delegateBySetsDuty, everyMs, async () => await duties.pass()),
    stop: () => {
      isStopping = true;
    },
  };
  return duties;
}

function hostsWithPages({ results }: Pick<ResultBatch, "results">): HostHash[] {
  const keys = results.flatMap(({ result }) => (result.page === null ? [] : [urlKeyOf(result.url)]));
  return keys.flatMap((key) => (typeof key === "string" ? [] : [key.hostHash]));
}
