/** A page's language: declared, detected by words, or by the model. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { areAlike, detectLanguage, languageCode, languageOf } from "#crawler/extract/language";
import { sharedData } from "../../support/shared-data.ts";

const texts: Readonly<Record<string, string>> = {
  en: "The crawler asks for the page once a day, and when it has not been changed since then there is nothing to be done for it.",
  de: "Der Roboter fragt einmal am Tag nach der Seite, und wenn sie sich seitdem nicht geändert hat, ist nichts weiter zu tun, als zu warten.",
  fr: "Le robot demande la page une fois par jour, et si elle n'a pas changé depuis, il n'y a rien à faire pour elle dans la base.",
  es: "El robot pide la página una vez al día y, si no ha cambiado desde entonces, no hay nada que hacer con ella en el índice.",
  it: "Il robot chiede la pagina una volta al giorno e se non è cambiata da allora non c'è niente da fare per essa nella base.",
  pt: "O robô pede a página uma vez por dia e, se ela não mudou desde então, não há nada mais a fazer para ela na base de dados.",
  nl: "De robot vraagt een keer per dag naar de pagina, en als die niet is veranderd, dan is er niets meer te doen voor het systeem.",
  sv: "Roboten frågar efter sidan en gång om dagen, och om den inte har ändrats sedan dess så är det inget mer att göra för den.",
  pl: "Robot pyta o stronę raz na dzień, a jeśli nie zmieniła się od tego czasu, to nie ma już nic do zrobienia dla niej w bazie.",
  tr: "Robot sayfayı her gün bir kez ister ve o zamandan sonra değişmemiş ise bunun için daha fazla bir şey yapmak gerekmez.",
  ru: "Робот спрашивает страницу один раз в день, и если она с тех пор не изменилась, то для неё больше ничего не нужно делать.",
  uk: "Робот питає сторінку один раз на день, і якщо вона з того часу не змінилася, то для неї більше нічого не треба робити.",
  el: "Το ρομπότ ζητά τη σελίδα μία φορά την ημέρα και αν δεν έχει αλλάξει από τότε δεν υπάρχει τίποτα άλλο να γίνει.",
  ja: "ロボットは一日に一度ページを求め、それ以来変わっていなければ、ほかにすることは何もありません。",
  zh: "机器人每天请求一次页面，如果从那以后没有变化，就没有什么可做的了。这就是它礼貌的方式，所有网站都应该欢迎它。",
  ar: "يطلب الروبوت الصفحة مرة واحدة في اليوم، وإذا لم تتغير منذ ذلك الحين فلا يوجد ما يجب القيام به من أجلها في هذا الفهرس.",
  hi: "रोबोट दिन में एक बार पृष्ठ माँगता है, और यदि वह तब से नहीं बदला है तो उसके लिए कुछ और करने की आवश्यकता नहीं है।",
};
const asked = (declared: string | null, text: string) =>
  languageOf({ declared, contentLanguage: null, text });

describe("a page that declares no language", () => {
  it.each(Object.entries(texts))("is in the language of its words: %s", async (language, text) => {
    expect(await asked(null, text)).toEqual({ language, detected: language });
  });

  it("is undecided when it has almost no text", async () => {
    expect(await asked(null, "Login")).toEqual({ language: null, detected: null });
  });

  it("is in the model's language when its words do not decide", async () => {
    const names =
      "Vaduz, Schaan, Triesen, Balzers, Eschen; Gemeindeverwaltung Öffnungszeiten Bürgerdienste Bauverwaltung Einwohnerkontrolle Zivilstandsamt";

    expect(detectLanguage(names)?.isClear ?? false).toBe(false);
    expect((await asked(null, names)).language).toBe("de");
  });
});

describe("a declaration", () => {
  it("is believed when the text agrees", async () => {
    expect(await asked("de-AT", texts.de!)).toEqual({ language: "de", detected: "de" });
  });

  it("loses against a text that is clearly in another language", async () => {
    expect(await asked("en", texts.fr!)).toEqual({ language: "fr", detected: "fr" });
    expect(await asked("en-US", texts.ja!)).toEqual({ language: "ja", detected: "ja" });
    expect(await asked("ru", texts.uk!)).toEqual({ language: "uk", detected: "uk" });
  });

  it("is believed when the text is too short", async () => {
    expect(await asked("fr", "Contact Support Login")).toEqual({ language: "fr", detected: null });
  });

  it("is overruled by another script only when nearly all text is in it", async () => {
    const persian =
      "گزارش های تازه درباره ی آب و هوا در این صفحه منتشر شد؛ بندر، پل، ایستگاه، خیابان، فرودگاه.";
    const half = (a: string, b: string) => `${a} ${b}`;

    expect((await asked("en", persian.repeat(2))).language).toBe("fa");
    expect((await asked("en", texts.ru!)).language).toBe("ru");
    expect((await asked("en", half(texts.en!, texts.el!))).language).toBe("en");
    expect((await asked("el", half(texts.en!, texts.el!))).language).toBe("el");
    expect((await asked("ru", half(texts.en!, texts.ru!.slice(0, 50)))).language).toBe("ru");
    expect((await asked("ru", texts.en!)).language).toBe("en");
  });

  it("is believed for Japanese with few kana but not with none, and for Serbian in either script", async () => {
    const headline =
      "東京都知事選挙候補者討論会開催、経済政策争点。日本銀行金融政策決定会合の結果発表、長期金利上昇。";
    const serbian =
      "Robot svaki dan traži stranicu i ako se nije promenila, za nju nema ništa što bi se moglo uraditi u bazi.";

    expect((await asked("ja", headline)).language).toBe("ja");
    expect((await asked("ja", texts.zh!)).language).toBe("zh");
    expect((await asked("sr", serbian)).language).toBe("sr");
  });

  it("covers related languages and languages that are unknown here", async () => {
    const norwegian =
      "Roboten spør etter siden en gang om dagen, og hvis den ikke har endret seg siden da, er det ikke noe mer å gjøre for den.";

    expect((await asked("no", norwegian)).language).toBe("no");
    expect((await asked("oc", texts.fr!)).language).toBe("oc");
    expect((await asked("yue", texts.zh!)).language).toBe("yue");
  });

  it("gives way to most words and the model when the text is short, terse or partly foreign", async () => {
    const rows = [
      "Wasserdichte Wanderschuhe aus Leder, Größe 42. Rutschfeste Sohle, atmungsaktives Innenfutter, 14 Tage Rückgabe, versandkostenfrei ab 50 Euro.",
      "In the press archive. Read more. Der Verein wurde 1904 gegründet und hat heute etwa 300 Mitglieder, die " +
        "sich jeden Donnerstag in der Halle treffen. Contact us. All rights reserved. Terms of use.",
      "hi leute, hab seit gestern probleme mit meinem router, nach dem update geht nix mehr. jemand ne idee? danke schon mal im voraus",
    ];
    const found = await Promise.all(rows.map(async (text) => (await asked("en-US", text)).language));

    expect(found).toEqual(["de", "de", "de"]);
    expect(
      (
        await asked(
          "en",
          "Ferries sail daily. Timetable: Monday to Friday. Tickets online. Bikes travel free on all of them.",
        )
      ).language,
    ).toBe("en");
  });

  it.each([
    ["utf-8", null],
    ["utf", null],
    ["xx", null],
    ["jp", null],
    ["deu-AT", "de"],
    ["ger", "de"],
    ["iw", "he"],
    ["cmn-Hans", "zh"],
    ["gsw", "gsw"],
    ["no", "no"],
    ["zxx", null],
  ])("of %s is of the language %s", (tag, code) => {
    expect(languageCode(tag)).toBe(code);
  });

  it("in the HTTP header counts when the page has none, and an invalid one never", async () => {
    const text = "Contact Support Login";

    expect((await languageOf({ declared: null, contentLanguage: "pt-BR, en", text })).language).toBe("pt");
    expect((await languageOf({ declared: "und", contentLanguage: "deutsch!", text })).language).toBeNull();
  });
});

it("only a part of a text of a million characters is examined", () => {
  const text = `${texts.en} `.repeat(10_000);

  expect(detectLanguage(text)?.language).toBe("en");
});

const samples = sharedData("suites/content/udhr-langid.json");

describe.skipIf(samples === null)("the Universal Declaration in many languages", () => {
  const all = () =>
    JSON.parse(readFileSync(samples!, "utf8")) as { bcp47: string; paragraphs: readonly string[] }[];
  const major = new Set(
    "en de fr es it pt nl sv da nb nn fi hu tr ro ru uk pl cs ca el ar he ja ko zh hi id vi th fa".split(" "),
  );

  it("is recognised in at least 95 of 100 samples of major languages, and hardly ever clearly wrong", () => {
    const known = all().filter(({ bcp47 }) => /^[a-z]{2}(-|$)/.test(bcp47) && major.has(bcp47.slice(0, 2)));

    const seen = known.map(({ bcp47, paragraphs }) => ({
      language: bcp47.slice(0, 2),
      found: detectLanguage(paragraphs.join(" ")),
    }));

    const right = seen.filter(({ language, found }) => found !== null && areAlike(found.language, language));
    const clearlyWrong = seen.filter(
      ({ language, found }) => found?.isClear === true && !areAlike(found.language, language),
    );
    expect(known.length).toBeGreaterThan(40);
    expect(right.length / known.length).toBeGreaterThanOrEqual(0.95);
    expect(clearlyWrong.length / known.length).toBeLessThanOrEqual(0.02);
  });
});
