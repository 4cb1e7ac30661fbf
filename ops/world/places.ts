/**
 * Where the emulated Internet is: cities with rounded coordinates in degrees, a weight (roughly the web hosts located
 * there, in thousandths of all) and the language of most of their sites. Also which Regional Internet Registry serves a
 * country.
 */
import type { Registry } from "#coordinator/place/subnets/subnet";

export interface Place {
  readonly name: string;
  /** ISO 3166-1 alpha-2 code. */
  readonly country: string;
  readonly latitude: number;
  readonly longitude: number;
  readonly weight: number;
  readonly language: Language;
}

export type Language = "en" | "de" | "fr" | "es" | "pt" | "it" | "nl" | "sv";
export type RegionalRegistry = Exclude<Registry, "iana">;

const table = `
Amsterdam NL 52.4 4.9 34 nl|Athens GR 38.0 23.7 6 en|Auckland NZ -36.8 174.8 6 en|Atlanta US 33.7 -84.4 16 en
Bangalore IN 13.0 77.6 10 en|Bangkok TH 13.8 100.5 8 en|Barcelona ES 41.4 2.2 8 es|Beijing CN 39.9 116.4 18 en
Belgrade RS 44.8 20.5 4 en|Berlin DE 52.5 13.4 18 de|Bogota CO 4.7 -74.1 7 es|Boston US 42.4 -71.1 14 en
Brisbane AU -27.5 153.0 5 en|Brussels BE 50.8 4.4 8 fr|Bucharest RO 44.4 26.1 7 en|Budapest HU 47.5 19.0 6 en
Buenos-Aires AR -34.6 -58.4 11 es|Cairo EG 30.0 31.2 6 en|Cape-Town ZA -33.9 18.4 6 en|Casablanca MA 33.6 -7.6 4 fr
Chicago US 41.9 -87.6 26 en|Copenhagen DK 55.7 12.6 9 en|Dakar SN 14.7 -17.5 2 fr|Dallas US 32.8 -96.8 24 en
Delhi IN 28.6 77.2 10 en|Denver US 39.7 -105.0 12 en|Dubai AE 25.2 55.3 7 en|Dublin IE 53.3 -6.3 13 en
Frankfurt DE 50.1 8.7 36 de|Geneva CH 46.2 6.1 5 fr|Hamburg DE 53.6 10.0 10 de|Hanoi VN 21.0 105.8 5 en
Helsinki FI 60.2 24.9 9 sv|Hong-Kong HK 22.3 114.2 16 en|Istanbul TR 41.0 29.0 10 en|Jakarta ID -6.2 106.8 9 en
Johannesburg ZA -26.2 28.0 9 en|Kyiv UA 50.5 30.5 9 en|Lagos NG 6.5 3.4 5 en|Lima PE -12.0 -77.0 5 es
Lisbon PT 38.7 -9.1 6 pt|London GB 51.5 -0.1 36 en|Los-Angeles US 34.1 -118.2 30 en|Lyon FR 45.8 4.8 7 fr
Madrid ES 40.4 -3.7 12 es|Manchester GB 53.5 -2.2 9 en|Manila PH 14.6 121.0 5 en|Marseille FR 43.3 5.4 6 fr
Melbourne AU -37.8 145.0 8 en|Mexico-City MX 19.4 -99.1 11 es|Miami US 25.8 -80.2 14 en|Milan IT 45.5 9.2 13 it
Monterrey MX 25.7 -100.3 4 es|Montevideo UY -34.9 -56.2 2 es|Montreal CA 45.5 -73.6 14 fr|Moscow RU 55.8 37.6 22 en
Mumbai IN 19.1 72.9 13 en|Munich DE 48.1 11.6 11 de|Nairobi KE -1.3 36.8 5 en|New-York US 40.7 -74.0 34 en
Novosibirsk RU 55.0 82.9 5 en|Osaka JP 34.7 135.5 12 en|Oslo NO 59.9 10.8 8 en|Paris FR 48.9 2.4 28 fr
Perth AU -32.0 115.9 4 en|Phoenix US 33.4 -112.1 10 en|Porto-Alegre BR -30.0 -51.2 4 pt|Prague CZ 50.1 14.4 9 en
Recife BR -8.1 -34.9 4 pt|Riga LV 56.9 24.1 4 en|Rio-de-Janeiro BR -22.9 -43.2 8 pt|Rome IT 41.9 12.5 8 it
Saint-Petersburg RU 59.9 30.3 8 en|San-Jose US 37.3 -121.9 34 en|Santiago CL -33.4 -70.7 7 es|Sao-Paulo BR -23.6 -46.6 20 pt
Seattle US 47.6 -122.3 22 en|Seoul KR 37.6 127.0 18 en|Shanghai CN 31.2 121.5 16 en|Shenzhen CN 22.5 114.1 12 en
Singapore SG 1.4 103.8 22 en|Sofia BG 42.7 23.3 5 en|Stockholm SE 59.3 18.1 14 sv|Sydney AU -33.9 151.2 14 en
Taipei TW 25.0 121.6 9 en|Tel-Aviv IL 32.1 34.8 7 en|Tokyo JP 35.7 139.7 28 en|Toronto CA 43.7 -79.4 17 en
Tunis TN 36.8 10.2 2 fr|Vancouver CA 49.3 -123.1 9 en|Vienna AT 48.2 16.4 10 de|Vladivostok RU 43.1 131.9 2 en
Warsaw PL 52.2 21.0 12 en|Washington US 38.9 -77.0 40 en|Zurich CH 47.4 8.5 13 de|Kuala-Lumpur MY 3.1 101.7 7 en
`;

export const places: readonly Place[] = table.trim().split(/[|\n]/).map(readPlace);

/** Cities with exchanges, through which detours run when networks do not meet at home. */
export const exchangeCities: readonly string[] = [
  "Frankfurt",
  "London",
  "Washington",
  "Miami",
  "Los Angeles",
  "Singapore",
  "Tokyo",
  "Marseille",
  "Stockholm",
  "Sao Paulo",
];

/** Returns the registry that serves a country: the RIPE NCC for those not listed (Europe, Middle East). */
export function registryOf(country: string): RegionalRegistry {
  return registryByCountry.get(country) ?? "ripencc";
}

/** Countries in which a National Internet Registry assigns the addresses (such as Japan, Brazil, Mexico). */
export const nationalRegistries: ReadonlyMap<string, string> = new Map([
  ["BR", "Registro Nacional BR"],
  ["MX", "Registro Nacional MX"],
  ["CN", "National Registry CN"],
  ["ID", "National Registry ID"],
  ["JP", "National Registry JP"],
  ["KR", "National Registry KR"],
  ["TW", "National Registry TW"],
  ["VN", "National Registry VN"],
]);

/** Great-circle distance in kilometres (haversine, mean Earth radius 6371 km). */
export function distanceKm(
  a: { readonly latitude: number; readonly longitude: number },
  b: { readonly latitude: number; readonly longitude: number },
): number {
  const radians = Math.PI / 180;
  const sinLat = Math.sin(((b.latitude - a.latitude) * radians) / 2);
  const sinLon = Math.sin(((b.longitude - a.longitude) * radians) / 2);
  const h = sinLat ** 2 + Math.cos(a.latitude * radians) * Math.cos(b.latitude * radians) * sinLon ** 2;
  return 2 * 6371 * Math.asin(Math.min(1, Math.sqrt(h)));
}

const registryByCountry: ReadonlyMap<string, RegionalRegistry> = new Map(
  (
    [
      ["afrinic", "ZA EG KE NG MA SN TN"],
      ["apnic", "AU NZ CN HK IN ID JP KR MY PH SG TH TW VN"],
      ["arin", "US CA"],
      ["lacnic", "AR BR CL CO MX PE UY"],
    ] as const
  ).flatMap(([registry, countries]) => countries.split(" ").map((country) => [country, registry] as const)),
);

function readPlace(row: string): Place {
  const [name, country, latitude, longitude, weight, language] = row.trim().split(" ");
  if (!name || !country || !language) throw new Error(`places: "${row}" is not a place`);
  return {
    name: name.replaceAll("-", " "),
    country,
    latitude: Number(latitude),
    longitude: Number(longitude),
    weight: Number(weight),
    language: language as Language,
  };
}
