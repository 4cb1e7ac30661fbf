/** `nearcrawl fleet`: who crawls, and crawlers that are to join, to leave or to come back. */
import type { Command } from "commander";
import { crawlerApi } from "#coordinator/fleet/crawler-api";
import { fleetApi } from "#coordinator/fleet/fleet-api";
import { invitationApi } from "#coordinator/fleet/invitation-api";
import { inviteCommand, reinviteCommand } from "../fleet/invite.ts";
import { groupOf } from "../room-command.ts";
import { adviseCommand } from "./of-rooms.ts";

const room = "fleet";

export async function fleetCommand(): Promise<Command> {
  const group = groupOf(
    "fleet",
    "the crawlers and what each one has; invite, drain, resume or revoke one",
    [
      {
        ...{ name: "list", room, operation: fleetApi.fleet },
        says: "every crawler with its state, subnets, open leases, and what it has fetched today",
        columns: {
          crawlers:
            "name state place subnets unmeasured meanRttMs openLeases pagesToday pagesPerDay " +
            "shippedBytesToday release.version trust draining.askedBy offlineReason identity.copiedAt",
        },
      },
      {
        ...{ name: "show", room, operation: crawlerApi.crawler },
        says: "one crawler: online or offline since when and why, its limits, keys, releases, incidents, trust and log",
        columns: {
          subnets: "range name country rttMs inherited",
          fetches: "at url outcome blame status totalMs",
          incidents: "lastAt kind count words",
          evidence: "at url verdict counts words why",
          lines: "at kind words by",
        },
      },
      {
        ...{ name: "incidents", room, operation: fleetApi.incidents, named: { crawler: "name" } },
        says: "what was rejected and why, by crawler, kind and hour, the latest first",
        columns: { incidents: "lastAt crawler kind count remoteAddress words" },
      },
      {
        ...{ name: "trust", room, operation: fleetApi.trust },
        says: "whose pages and probe reports are trusted (the evidence: fleet show NAME)",
        columns: { crawlers: "crawler standing comparisons score pages since words" },
      },
      {
        ...{ name: "believe", room, operation: crawlerApi.believeCrawler },
        says: "trust a crawler again: the evidence against it no longer counts, and it starts as a newcomer",
      },
      {
        ...{ name: "failures", room, operation: fleetApi.failures },
        says: "failed fetches by whose fault they are, in all and by crawler; the latest ones",
        columns: {
          byCrawler: "crawler fetches failures",
          latest: "at crawler blame status url words",
        },
      },
      {
        ...{ name: "log", room, operation: crawlerApi.crawlerLog },
        says: "what happened to a crawler, and when it was away and why",
        columns: { lines: "at kind words by", absences: "since until reason lastWords" },
      },
      {
        ...{ name: "moves", room, operation: fleetApi.moves },
        says: "crawlers that moved to another host, or are moving",
        columns: { moves: "name otherName step words askedAt changedAt bytes" },
      },
      {
        ...{ name: "move", room, operation: crawlerApi.moveCrawler },
        says: "move a crawler to another host, with its name and number, subnets, hosts' paces and waiting results",
        columns: {},
        help: `

The crawler that ran there hands over its subnets and ceases to exist. The other host has joined as a crawler of its own before;
both must be connected. Limits, daily counts and settings.toml stay with each host. A running coordinator leads the move, and
nearcrawl fleet moves tells how far it is. If anything fails before the move is made, both continue as before.`,
      },
      {
        ...{ name: "drain", room, operation: crawlerApi.drainCrawler },
        says: "give it no more work and hand over its subnets, until it is resumed",
      },
      {
        ...{ name: "resume", room, operation: crawlerApi.resumeCrawler },
        says: "resume a drained crawler: it gets the subnets nearest to it",
      },
      {
        ...{ name: "budget", room, operation: crawlerApi.grantBudget },
        says: "change what a crawler may fetch per day, at once, and never more than its partner allows (none: as its partner allows)",
        columns: {},
      },
      {
        ...{ name: "domain-sets", room, operation: crawlerApi.giveDomainSets, takes: "sets..." },
        says: "change which domains and languages a crawler may have (none: every domain again)",
        body: ([, ...sets]) => ({ sets: sets.length === 1 && sets[0] === "none" ? [] : sets }),
        columns: {},
        help: `

A set: .gr, "example.org not shop.example.org", ".gr lang:el". A host must be in one of the sets, and in one of
those that the crawler's partner names, if any; it is crawled by the nearest crawler that may have it. While no page
of a host is known, every language may hold it.`,
      },
      {
        ...{ name: "rotate", room, operation: crawlerApi.rotateKey },
        says: "give a crawler a new key without touching its machine; an offline one gets it when it connects (keys are replaced automatically after 90 days)",
      },
      {
        ...{ name: "renew-signing-key", room, operation: crawlerApi.renewSigningKey },
        says: "replace the key that signs requests to sites: the crawler makes another, used once it is published (automatic after signingKeyDays)",
      },
      {
        ...{ name: "revoke", room, operation: crawlerApi.revokeCrawler },
        says:
          "revoke a crawler's access at once, whatever key it shows; its subnets go to others after " +
          "the departure delay. nearcrawl fleet reinvite brings it back",
        follows: "its leases return when they expire; its subnets go to others after the departure delay.",
      },
      {
        ...{ name: "kill", room, operation: crawlerApi.killCrawler },
        says: "revoke a crawler's access, return its leases and hand over its subnets, all at once. nearcrawl fleet reinvite brings it back",
        follows: "its leases return and its subnets go to others at once.",
      },
      {
        ...{ name: "invitations", room, operation: invitationApi.invitations },
        says: "the invitations and their states, the latest first",
        columns: {
          invitations: "invitationId name state createdAt createdBy expiresAt pagesPerDay scopes renews",
        },
      },
      {
        ...{ name: "revoke-invitation", room, operation: invitationApi.revokeInvitation },
        says: "withdraw an invitation; a crawler that has joined with it stays (nearcrawl fleet revoke)",
      },
    ],
    `

Examples:
  nearcrawl fleet show athens
  nearcrawl fleet invite --name athens --capacity 50000
  nearcrawl fleet incidents --name athens --since 24h
  nearcrawl fleet budget athens --pages-per-day 50000
  nearcrawl fleet domain-sets athens .gr lang:el
  nearcrawl fleet failures --blame crawler
  nearcrawl fleet advise`,
  );
  for (const one of [inviteCommand(), reinviteCommand(), await adviseCommand()]) group.addCommand(one);
  return group;
}
