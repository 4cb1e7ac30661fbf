import { describe, expect, it } from "vitest";
import { companyNameOf, holderOf, normaliseCompanyName } from "#coordinator/place/subnets/holder-name";

describe("one company, however it is written", () => {
  it.each([
    [
      "example networks",
      [
        "Example Networks, Inc.",
        "EXAMPLE NETWORKS INC",
        "Example-Networks",
        "The Example Networks Corporation",
        "  Example   Networks  Co., Ltd.",
      ],
    ],
    [
      "beispiel",
      ["Beispiel GmbH", "BEISPIEL G.m.b.H.", "Beispiel GmbH & Co. KG", "Beispiel mbH", "Beispiel AG"],
    ],
    [
      "ejemplo telefonia",
      [
        "Ejemplo Telefonía S.A.",
        "EJEMPLO TELEFONIA SA",
        "Ejemplo Telefonia, S. A.",
        "Ejemplo Telefonia S.A. de C.V.",
      ],
    ],
    ["voorbeeld", ["Voorbeeld B.V.", "Voorbeeld BV", "Voorbeeld N.V."]],
    ["exemple", ["Exemple S.à r.l.", "Exemple SARL", "EXEMPLE S.A.S."]],
    ["przyklad lacza", ["Przyklad Lacza Sp. z o.o.", "PRZYKLAD LACZA SP Z O.O."]],
    ["eksempel", ["Eksempel A/S", "Eksempel ApS", "Eksempel AS"]],
    ["contoh nusantara", ["PT Contoh Nusantara", "PT. Contoh Nusantara"]],
    ["primer svyaz", ["LLC Primer Svyaz", "Primer Svyaz LLC", "OOO Primer-Svyaz"]],
    ["пример связь", ["ООО «Пример Связь»", "Пример Связь"]],
    ["udaharan", ["Udaharan (Private) Limited", "Udaharan Pvt. Ltd.", "Udaharan Private Limited"]],
    ["smith and sons", ["Smith & Sons Ltd", "Smith and Sons, Limited"]],
    [
      "exemplo fibra",
      ["Exemplo Fibra Ltda - ME", "EXEMPLO FIBRA LTDA", "Exemplo Fibra EIRELI ME", "Exemplo Fibra EPP"],
    ],
    ["ornek iletisim", ["Örnek İletişim Ltd. Şti.", "ORNEK ILETISIM LIMITED SIRKETI", "Ornek Iletisim A.S."]],
    [
      "ejemplo andino",
      [
        "Ejemplo Andino, C.A.",
        "Ejemplo Andino S.A.C.",
        "EJEMPLO ANDINO E.I.R.L.",
        "Ejemplo Andino S.A. E.S.P.",
      ],
    ],
    [
      "ejemplo del sur",
      ["Ejemplo del Sur Sociedad Anónima", "Ejemplo del Sur Sociedad Limitada", "Ejemplo del Sur S.L."],
    ],
    ["naide vork", ["Näide Võrk OÜ", "NAIDE VORK OU"]],
    ["priklad spojeni", ["Příklad spojení, spol. s r.o.", "Priklad Spojeni s.r.o.", "PRIKLAD SPOJENI SRO"]],
    [
      "przykladowa siec",
      ["Przykladowa Siec Sp. z.o.o.", "Przykladowa Siec Spolka z ograniczona odpowiedzialnoscia"],
    ],
    [
      "primer zavod",
      ['Joint Stock Company "Primer Zavod"', "Primer Zavod (Public Joint-Stock Company)", "JSC Primer Zavod"],
    ],
    ["primer holod", ["Limited Liability Company Primer Holod", "Primer Holod LLC", 'PE "Primer Holod"']],
    ["piemers tikls", ['SIA "Piemers Tikls"', "Piemers Tikls SIA"]],
    ["exemplu fibra", ["S.C. Exemplu Fibra S.R.L.", "Exemplu Fibra SRL"]],
    ["contoh media", ["Contoh Media, PT", "PT Contoh Media Tbk", "PT. Contoh Media"]],
    ["misal", ["Misal Company (PJS)", "Misal Co. Private Joint Stock"]],
    ["例示通信", ["株式会社例示通信", "例示通信株式会社", "例示通信"]],
    ["obriens", ["O'Briens Ltd", "O’Briens"]],
  ])("is %s", (expected, spellings) => {
    expect(spellings.map(normaliseCompanyName)).toEqual(spellings.map(() => expected));
  });

  it.each<[string, string]>([
    ["City of Example, CA", "city of example ca"],
    ["Contoh.PT", "contoh pt"],
    ["Ask Me", "ask me"],
    ["Example Joint Stock Bank", "example joint stock bank"],
    ["SC Example", "sc example"],
    ["AS Example Transit", "as example transit"],
    ["Co-operative Example Society", "co operative example society"],
    ...["Co., Ltd.", "GmbH", "...", "", "LLC"].map((form): [string, string] => [form, ""]),
  ])("keeps what is a legal form elsewhere only, and nothing of a legal form alone: %s", (written, name) => {
    expect(normaliseCompanyName(written)).toBe(name);
  });

  it("is read in time from a hostile name of a million characters", () => {
    expect(normaliseCompanyName("A.".repeat(500_000)).length).toBeLessThanOrEqual(200);
    expect(normaliseCompanyName("( , ".repeat(250_000))).toBe("");
  });
});

describe("a name that strangers share", () => {
  it.each([
    "data center",
    "internet services",
    "telecom",
    "abc",
    "national university",
    "customer 17",
    "ibm",
    "net 4",
    "skynet",
    "fiberlink",
    "infinity broadband",
    "interconnect",
    "hostmaster",
    "smart ip",
    "alfa link",
    "last mile",
    "ip com",
    "university of nicosia",
    "通信",
  ])("is not distinctive: %s", (name) => {
    expect(companyNameOf(name).isDistinctive).toBe(false);
  });

  it.each([
    "example harbour networks",
    "cloudflare",
    "exemplary networks",
    "smith and sons",
    "例示通信",
    "primer svyaz",
  ])("is not %s", (name) => {
    expect(companyNameOf(name).isDistinctive).toBe(true);
  });

  it("identifies within registry and country only, and nowhere when neither is known", () => {
    expect(holderOf({ name: "Data Center Ltd", registry: "apnic", country: "JP" })?.key).toBe(
      "name:apnic:JP:data center",
    );
    expect(holderOf({ name: "Data Center", registry: "apnic", country: "KR" })?.key).toBe(
      "name:apnic:KR:data center",
    );
    expect(holderOf({ name: "Data Center" })).toBeNull();
  });
});

describe("holderOf", () => {
  it("takes the handle first, within its registry", () => {
    const source = { handle: "org-ex1-ripe", opaqueId: "abc123", name: "Example Harbour Networks Inc" };

    expect(holderOf({ ...source, registry: "ripencc" })).toEqual({
      key: "ripencc:org-handle:ORG-EX1-RIPE",
      name: "Example Harbour Networks Inc",
      handle: "ORG-EX1-RIPE",
    });
    expect(holderOf({ ...source, registry: "arin" })?.key).toBe("arin:org-handle:ORG-EX1-RIPE");
  });

  it("takes the opaque-id next, then the name", () => {
    expect(holderOf({ registry: "afrinic", opaqueId: "F36B9F4B", name: "Example" })?.key).toBe(
      "afrinic:opaque-id:F36B9F4B",
    );
    expect(holderOf({ registry: "afrinic", name: "Example Harbour Networks Ltd." })).toEqual({
      key: "name:example harbour networks",
      name: "Example Harbour Networks Ltd.",
      handle: null,
    });
  });

  it("takes a customer's name within the organisation that it is a customer of", () => {
    const customer = { registry: "arin", handle: "C00000001", parentHandle: "examp-12" };

    expect(holderOf({ ...customer, name: "Example Bakery, Inc." })?.key).toBe(
      "arin:customer:EXAMP-12:example bakery",
    );
    expect(holderOf({ ...customer, name: "Private Customer" })?.key).toBe("arin:org-handle:C00000001");
  });

  it("shows the handle or opaque-id where there is no name, and takes them for nothing without a registry", () => {
    expect(holderOf({ registry: "arin", handle: "EXNET" })?.name).toBe("EXNET");
    expect(holderOf({ registry: "lacnic", opaqueId: "12345" })?.name).toBe("12345");
    const named = { handle: "EXNET", name: "Example Harbour Networks" };
    expect(holderOf(named)?.key).toBe("name:example harbour networks");
    expect(holderOf({ opaqueId: "12345" })).toBeNull();
  });

  it.each([
    "Not allocated by APNIC",
    "Private Customer",
    "private residence",
    "Unknown",
    "N/A",
    "-",
    "????",
    "Internet Assigned Numbers Authority",
    "Administered by RIPE NCC",
    "NON-RIPE-NCC-MANAGED-ADDRESS-BLOCK",
    "Customer",
    "TBD",
    "12345",
  ])("never takes the placeholder %j for a company", (name) => {
    expect(holderOf({ name, registry: "apnic", country: "AU" })).toBeNull();
  });

  it.each([
    [{ name: "EXAMPLE-MNT", registry: "ripencc" }, null],
    [{ name: "MAINT-AU-EXAMPLE", registry: "apnic" }, null],
    [{ handle: "MNT-EXAMPLE", registry: "ripencc" }, null],
    [{ registry: "ripencc", handle: "ORG-IANA1-RIPE" }, null],
    [
      { registry: "apnic", opaqueId: "00000000", name: "Example Harbour Networks" },
      "name:example harbour networks",
    ],
    [{}, null],
    [{ registry: "arin", handle: " ", opaqueId: "", name: "\t" }, null],
  ])("passes over maintainers, placeholder handles and ids to what comes next: %j", (source, key) => {
    expect(holderOf(source)?.key ?? null).toBe(key);
  });
});
