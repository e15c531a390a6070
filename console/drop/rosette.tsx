// A figure of fine lines, as on banknotes: the same for the same text, and another one for any other.

import { seedOf } from './text.ts';

const SIZE = 200;
const STEPS = 360;
const RINGS = 16;

export function Rosette({ text }: { text: string }) {
  const seed = seedOf(text);
  const petals = 5 + (seed % 8);
  const depth = 0.16 + ((seed >>> 8) % 100) / 1_000;
  const twist = 0.5 + ((seed >>> 16) % 100) / 100;
  return (
    <svg class="rosette" viewBox={`0 0 ${SIZE} ${SIZE}`} aria-hidden="true" focusable="false">
      {Array.from({ length: RINGS }, (_, ring) => (
        <path key={ring} d={curve(petals, depth, twist, ring / RINGS)} />
      ))}
    </svg>
  );
}

/** A circle that swings in and out; each ring is a little smaller and turned a little further than the last. */
function curve(petals: number, depth: number, twist: number, turn: number): string {
  const middle = SIZE / 2;
  const points = Array.from({ length: STEPS }, (_, step) => {
    const angle = (step / STEPS) * 2 * Math.PI;
    const swing = depth * Math.cos(petals * angle + turn * twist * 2 * Math.PI);
    const radius = middle * (0.74 - turn * 0.4 + swing);
    return `${round(middle + radius * Math.cos(angle))} ${round(middle + radius * Math.sin(angle))}`;
  });
  return `M${points.join('L')}Z`;
}

const round = (value: number): number => Math.round(value * 100) / 100;
