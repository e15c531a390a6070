// What was changed in a form: the rest is not sent, so that a value from before a check does not stand in the way of another.

type Input = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;

export function changedOf(
  form: HTMLFormElement,
  values: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const changed = [...form.elements].filter(isChanged);
  return Object.fromEntries(
    changed.filter(({ name }) => name in values).map(({ name }) => [name, values[name]]),
  );
}

function isChanged(element: Element): element is Input {
  if (element instanceof HTMLSelectElement) return element.value !== element.dataset.was;
  if (element instanceof HTMLTextAreaElement) return element.value !== element.defaultValue;
  if (!(element instanceof HTMLInputElement)) return false;
  return element.type === 'checkbox'
    ? element.checked !== element.defaultChecked
    : element.value !== element.defaultValue;
}

/** Words apart by commas or spaces. */
export const wordsIn = (text: string): string[] => text.split(/[\s,]+/).filter(Boolean);
