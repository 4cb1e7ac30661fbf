import { describe, expect, it } from "vitest";
import { mentionsNotFound, saysNotFound } from "#crawler/traps/site-memory";

describe("a page says that it is not found", () => {
  it.each([
    "Page not found",
    "404 Not Found",
    "Oops! That page can’t be found.",
    "Page Not Found | Some Shop",
    "Some Shop - Error 404: Page not found",
    "HTTP 404 – File not found",
    "Fehler 404: Die Seite wurde nicht gefunden",
    "Page introuvable - Le Site",
    "Página no encontrada – Sitio",
    "Страница не найдена — Сайт",
    "Сторінку не знайдено",
    "ページが見つかりませんでした｜会社",
    "페이지를 찾을 수 없습니다",
    "页面不存在 - 网站",
    "الصفحة غير موجودة",
    "Sayfa Bulunamadı",
    "Stránka nenalezena",
  ])("%s", (text) => {
    expect(saysNotFound(text)).toBe("said");
  });
});

describe("a page may mean that it is not found", () => {
  it.each([
    "404",
    "Error 404 | Some Shop",
    "HTTP 404 - an encyclopedia",
    "We looked everywhere, but the page you are looking for does not exist any more",
  ])("%s", (text) => {
    expect(saysNotFound(text)).toBe("hinted");
  });
});

describe("a page is about something else", () => {
  it.each([
    "Peugeot 404 cabriolet",
    "The treasure that was not found in 404 days",
    "Lost and found",
    "Room 404",
    "Nicht gefundene Schätze",
    "",
  ])("%s", (text) => {
    expect(saysNotFound(text)).toBeNull();
  });
});

it("a text may mention it in its first sentences", () => {
  expect(
    mentionsNotFound("Dear visitor! Sorry, the page you requested could not be found. Try the search."),
  ).toBe(true);
  expect(mentionsNotFound("Not found.")).toBe(true);
  expect(mentionsNotFound("大変申し訳ございません。お探しのページは見つかりませんでした。")).toBe(true);
  expect(mentionsNotFound("The keys were not found in the page of the book.")).toBe(false);
});
