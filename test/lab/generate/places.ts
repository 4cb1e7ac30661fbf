/** Countries and towns of each registry's region, for the objects that are generated. */
import type { RegionalRegistry } from "./address-blocks.ts";

/** ISO 3166-1 alpha-2; the more objects a country has in the real database, the earlier. */
const countries: Readonly<Record<RegionalRegistry, readonly string[]>> = {
  ripencc: "DE GB IT FR ES NL RU PL SE UA CH TR NO CZ AT BE DK RO FI IL PT IR HU GR SA IE BG".split(" "),
  apnic: "AU IN JP CN ID TW KR HK NZ TH MY VN SG PH BD PK LK NP".split(" "),
  arin: "US CA PR JM BS BB".split(" "),
  lacnic: "BR AR MX CO CL PE EC VE UY CR PA BO PY GT".split(" "),
  afrinic: "ZA NG KE EG MA TN GH MU TZ SN CI UG".split(" "),
};

const towns =
  "Ashford Bellmont Clearwater Dunmore Eastvale Fairhaven Glenfield Highbury Ironbridge Juniper Kingsport Lakeside Millbrook Northgate Oakdale Pinecrest Queensbury Riverton Stonebridge Thornhill Upton Valemont Westbrook Yarrow".split(
    " ",
  );

export function countryOf(registry: RegionalRegistry, number: number): string {
  const list = countries[registry];
  return list[number % list.length] as string;
}

export function townOf(number: number): string {
  return towns[number % towns.length] as string;
}
