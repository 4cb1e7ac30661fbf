import { expect, it } from "vitest";
import { spreadMarks, tileSide } from "#coordinator/explore/colours";

const at = (x: number, y: number) => y * tileSide + x;

it("draws lonely marks as squares of five pixels, at the edge as much as there is, and full", () => {
  const pixels = new Uint8Array(tileSide * tileSide).fill(1);
  pixels[at(100, 50)] = 3;
  pixels[at(0, 0)] = 7;

  expect(spreadMarks(pixels)).toBe(true);

  expect(pixels.filter((colour) => colour === 5)).toHaveLength(25);
  expect([pixels[at(98, 48)], pixels[at(102, 52)], pixels[at(103, 50)]]).toEqual([5, 5, 1]);
  expect(pixels.filter((colour) => colour === 8)).toHaveLength(9);
});

it("never draws a mark over another", () => {
  const pixels = new Uint8Array(tileSide * tileSide);
  pixels[at(10, 10)] = 5;
  pixels[at(11, 10)] = 8;

  spreadMarks(pixels);

  expect([pixels[at(10, 10)], pixels[at(11, 10)]]).toEqual([5, 8]);
  expect([pixels[at(8, 10)], pixels[at(13, 10)]]).toEqual([5, 8]);
});

it("leaves a tile as it is that has many marks, or none", () => {
  const many = Uint8Array.from({ length: tileSide * tileSide }, (_, pixel) => (pixel % 100 === 0 ? 5 : 0));
  const before = many.slice();

  expect(spreadMarks(many)).toBe(false);
  expect(many).toEqual(before);
  expect(spreadMarks(new Uint8Array(tileSide * tileSide))).toBe(false);
});
