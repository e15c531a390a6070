// What is drawn in a chart: its pixels.

import type { Page } from 'playwright-core';

interface Canvas {
  width: number;
  height: number;
  getContext(kind: '2d'): {
    getImageData(x: number, y: number, width: number, height: number): { data: ArrayLike<number> };
  } | null;
}

const canvasOf = (page: Page, title: string) =>
  page.locator('.tile', { has: page.getByRole('heading', { name: title, exact: true }) }).locator('canvas');

/** How many pixels of a chart have the colour of an outage: red, and thin as the shade is; the line of an alert is not thin. */
export const shaded = (page: Page, title: string): Promise<number> =>
  canvasOf(page, title).evaluate((node) => {
    const canvas = node as unknown as Canvas;
    const { width, height } = canvas;
    const { data } = canvas.getContext('2d')?.getImageData(0, 0, width, height) ?? { data: [] };
    let pixels = 0;
    for (let at = 0; at < data.length; at += 4) {
      const [red = 0, , blue = 0, alpha = 0] = [data[at], data[at + 1], data[at + 2], data[at + 3]];
      if (alpha > 10 && alpha < 100 && red > blue + 60) pixels++;
    }
    return pixels;
  });

/** How wide the line of a chart is in all, in pixels: the columns of the canvas that have the colour `--stone`, or nearly so. */
export const drawn = (page: Page, title: string): Promise<number> =>
  canvasOf(page, title).evaluate((node) => {
    const canvas = node as unknown as Canvas;
    const { width, height } = canvas;
    const { data } = canvas.getContext('2d')?.getImageData(0, 0, width, height) ?? { data: [] };
    const stone = [0x4b, 0x5f, 0x9e];
    const columns = new Set<number>();
    for (let at = 0; at < data.length; at += 4)
      if ((data[at + 3] ?? 0) > 100 && stone.every((part, of) => Math.abs((data[at + of] ?? 0) - part) < 12))
        columns.add((at / 4) % width);
    return columns.size;
  });
