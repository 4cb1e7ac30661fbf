/**
 * Cities with rounded coordinates in degrees and the people of their urban area in millions, for the model of
 * networks in `cities.ts`. Where people live, not where servers stand: what has to do with networks, the model draws.
 */

/** The Regional Internet Registries' parts of the world. */
export type Region = "africa" | "asia" | "europe" | "latin-america" | "north-america";

export interface City {
  readonly name: string;
  /** ISO 3166-1 alpha-2. */
  readonly country: string;
  readonly latitude: number;
  readonly longitude: number;
  readonly millions: number;
  readonly region: Region;
}

const table: Readonly<Record<Region, string>> = {
  africa: `
Algiers DZ 36.8 3.1 2.9, Alexandria EG 31.2 29.9 5.6, Cairo EG 30.0 31.2 22.2, Casablanca MA 33.6 -7.6 3.8,
Tunis TN 36.8 10.2 2.4, Dakar SN 14.7 -17.4 3.4, Abidjan CI 5.3 -4.0 5.7, Accra GH 5.6 -0.2 2.7,
Lagos NG 6.5 3.4 15.9, Kinshasa CD -4.3 15.3 16.3, Luanda AO -8.8 13.2 9.3, Nairobi KE -1.3 36.8 5.3,
Addis-Ababa ET 9.0 38.7 5.5, Dar-es-Salaam TZ -6.8 39.3 7.8, Johannesburg ZA -26.2 28.0 6.2,
Cape-Town ZA -33.9 18.4 4.9, Antananarivo MG -18.9 47.5 3.9`,
  asia: `
Tokyo JP 35.7 139.7 37.2, Osaka JP 34.7 135.5 19.0, Sapporo JP 43.1 141.3 2.7, Seoul KR 37.6 127.0 10.0,
Busan KR 35.2 129.1 3.5, Beijing CN 39.9 116.4 21.8, Shanghai CN 31.2 121.5 29.2, Guangzhou CN 23.1 113.3 14.3,
Chengdu CN 30.7 104.1 9.7, Wuhan CN 30.6 114.3 8.7, Hong-Kong HK 22.3 114.2 7.7, Taipei TW 25.0 121.6 2.8,
Manila PH 14.6 121.0 14.7, Hanoi VN 21.0 105.8 5.3, Ho-Chi-Minh-City VN 10.8 106.7 9.3, Bangkok TH 13.8 100.5 11.1,
Kuala-Lumpur MY 3.1 101.7 8.6, Singapore SG 1.4 103.8 6.1, Jakarta ID -6.2 106.8 11.2, Surabaya ID -7.3 112.7 3.1,
Dhaka BD 23.8 90.4 23.2, Kolkata IN 22.6 88.4 15.3, Delhi IN 28.6 77.2 32.9, Mumbai IN 19.1 72.9 21.3,
Chennai IN 13.1 80.3 11.8, Bengaluru IN 13.0 77.6 13.6, Colombo LK 6.9 79.9 0.6, Karachi PK 24.9 67.0 17.2,
Lahore PK 31.5 74.3 13.9, Sydney AU -33.9 151.2 5.1, Melbourne AU -37.8 145.0 5.2, Perth AU -32.0 115.9 2.1,
Auckland NZ -36.8 174.8 1.7`,
  europe: `
London GB 51.5 -0.1 9.6, Manchester GB 53.5 -2.2 2.8, Dublin IE 53.3 -6.3 1.3, Paris FR 48.9 2.4 11.2,
Lyon FR 45.8 4.8 1.8, Marseille FR 43.3 5.4 1.6, Madrid ES 40.4 -3.7 6.8, Barcelona ES 41.4 2.2 5.7,
Lisbon PT 38.7 -9.1 3.0, Amsterdam NL 52.4 4.9 1.2, Brussels BE 50.8 4.4 2.1, Frankfurt DE 50.1 8.7 0.8,
Berlin DE 52.5 13.4 3.6, Hamburg DE 53.6 10.0 1.8, Munich DE 48.1 11.6 1.6, Zurich CH 47.4 8.5 1.4,
Vienna AT 48.2 16.4 2.0, Prague CZ 50.1 14.4 1.3, Warsaw PL 52.2 21.0 1.8, Budapest HU 47.5 19.0 1.8,
Milan IT 45.5 9.2 3.2, Rome IT 41.9 12.5 4.3, Athens GR 38.0 23.7 3.2, Bucharest RO 44.4 26.1 1.8,
Copenhagen DK 55.7 12.6 1.4, Stockholm SE 59.3 18.1 1.7, Oslo NO 59.9 10.8 1.1, Helsinki FI 60.2 24.9 1.3,
Kyiv UA 50.5 30.5 3.0, Moscow RU 55.8 37.6 12.7, Saint-Petersburg RU 59.9 30.3 5.6, Novosibirsk RU 55.0 82.9 1.7,
Istanbul TR 41.0 29.0 15.8, Tel-Aviv IL 32.1 34.8 4.4, Dubai AE 25.2 55.3 3.0, Riyadh SA 24.7 46.7 7.7,
Tehran IR 35.7 51.4 9.5, Almaty KZ 43.2 76.9 2.0`,
  "latin-america": `
Mexico-City MX 19.4 -99.1 22.3, Guadalajara MX 20.7 -103.3 5.4, Guatemala-City GT 14.6 -90.5 3.1,
Panama-City PA 9.0 -79.5 2.0, Bogota CO 4.7 -74.1 11.5, Medellin CO 6.2 -75.6 4.1, Quito EC -0.2 -78.5 2.0,
Lima PE -12.0 -77.0 11.2, Santiago CL -33.4 -70.7 6.9, Buenos-Aires AR -34.6 -58.4 15.5, Montevideo UY -34.9 -56.2 1.8,
Sao-Paulo BR -23.6 -46.6 22.6, Rio-de-Janeiro BR -22.9 -43.2 13.7, Fortaleza BR -3.7 -38.5 4.2, Brasilia BR -15.8 -47.9 4.9,
Caracas VE 10.5 -66.9 3.0`,
  "north-america": `
New-York US 40.7 -74.0 18.9, Washington US 38.9 -77.0 5.5, Boston US 42.4 -71.1 4.3, Atlanta US 33.7 -84.4 6.1,
Miami US 25.8 -80.2 6.3, Chicago US 41.9 -87.6 8.9, Minneapolis US 45.0 -93.3 3.0, Dallas US 32.8 -96.8 6.6,
Houston US 29.8 -95.4 6.7, Denver US 39.7 -105.0 2.9, Phoenix US 33.4 -112.1 4.7, Los-Angeles US 34.1 -118.2 12.5,
San-Francisco US 37.8 -122.4 3.3, Seattle US 47.6 -122.3 3.5, Toronto CA 43.7 -79.4 6.4, Montreal CA 45.5 -73.6 4.3,
Vancouver CA 49.3 -123.1 2.7, Calgary CA 51.0 -114.1 1.6`,
};

export const cities: readonly City[] = (Object.keys(table) as Region[]).flatMap((region) =>
  table[region]
    .trim()
    .split(/,\s*/)
    .map((row) => readCity(row, region)),
);

function readCity(row: string, region: Region): City {
  const [name = "", country = "", latitude, longitude, millions] = row.split(" ");
  return {
    name: name.replaceAll("-", " "),
    country,
    latitude: Number(latitude),
    longitude: Number(longitude),
    millions: Number(millions),
    region,
  };
}

/** Great circle on a sphere of 6,371 km. */
export function kilometres(a: City, b: City): number {
  const radians = Math.PI / 180;
  const [latitude, otherLatitude] = [a.latitude * radians, b.latitude * radians];
  const apart = (b.longitude - a.longitude) * radians;
  const half =
    Math.sin((otherLatitude - latitude) / 2) ** 2 +
    Math.cos(latitude) * Math.cos(otherLatitude) * Math.sin(apart / 2) ** 2;
  return 2 * 6371 * Math.asin(Math.min(1, Math.sqrt(half)));
}
