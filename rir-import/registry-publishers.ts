/**
 * Names the publishers of imported data with links to their terms, as hints for operators; only the terms themselves
 * are binding.
 */

import type { RegistryPublisher } from "./read/status-api.ts";

export const registryPublishers: readonly RegistryPublisher[] = [
  {
    registry: "iana",
    name: "IANA",
    region: "the whole address space",
    publishes: "which registry has which block",
    terms: "Free for any purpose (CC0).",
    termsUrl: "https://www.iana.org/help/licensing-terms",
  },
  {
    registry: "afrinic",
    name: "AFRINIC",
    region: "Africa",
    publishes: "statistics daily; the database, without persons",
    terms: "For operating networks and research into them; not to be resold or passed on.",
    termsUrl: "https://afrinic.net/whois/terms",
  },
  {
    registry: "apnic",
    name: "APNIC",
    region: "Asia and the Pacific",
    publishes: "statistics daily; the database by type of object",
    terms:
      "For operating networks and research into them; not to be passed on in bulk. Mapping addresses to places is excluded, which the statistics are for.",
    termsUrl: "https://www.apnic.net/manage-ip/using-whois/bulk-access/copyright/",
  },
  {
    registry: "arin",
    name: "ARIN",
    region: "North America and parts of the Caribbean",
    publishes: "statistics daily; bulk WHOIS data on request",
    terms: "The bulk data are for those who signed its terms, and not to be passed on.",
    termsUrl: "https://www.arin.net/reference/research/bulkwhois/",
  },
  {
    registry: "lacnic",
    name: "LACNIC",
    region: "Latin America and parts of the Caribbean",
    publishes: "statistics daily; the database, without persons; a bulk copy by agreement",
    terms: "The bulk copy is for operation and research by agreement, and not to be passed on.",
    termsUrl: "https://www.lacnic.net/",
  },
  {
    registry: "ripencc",
    name: "RIPE NCC",
    region: "Europe, the Middle East, Central Asia",
    publishes: "statistics daily; the database by type of object, without persons",
    terms: "For operating networks and research into them; personal data must not be taken in bulk.",
    termsUrl: "https://www.ripe.net/manage-ips-and-asns/db/support/documentation/terms",
  },
];
