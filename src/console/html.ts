// The frame of HTML around whatever a page holds.

export interface Html {
  readonly title: string;
  readonly viewport?: string;
  /** Beside what every page has. */
  readonly head?: readonly string[];
  readonly body: readonly string[];
}

export function htmlOf({ title, viewport, head = [], body }: Html): string {
  const size = ['width=device-width', 'initial-scale=1', viewport].filter(Boolean).join(', ');
  const metas = [
    '<meta charset="utf-8" />',
    `<meta name="viewport" content="${size}" />`,
    '<meta name="color-scheme" content="light dark" />',
  ];
  const lines = (elements: readonly string[]): string => elements.map((one) => `    ${one}\n`).join('');
  return `<!doctype html>
<html lang="en">
  <head>
${lines([...metas, `<title>${title}</title>`, ...head])}  </head>
  <body>
${lines(body)}  </body>
</html>
`;
}

/** Text as HTML shows it, between tags and between quotes. */
export function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** A page that a script draws. */
export const scripted = (whyScript: string): readonly string[] => [
  '<div id="app"></div>',
  `<noscript>${whyScript}</noscript>`,
];
