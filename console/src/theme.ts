/** Light or dark: as the system says, or as the page was told. */
import { signal } from '@preact/signals';

import { keep, kept } from './kept';

export type Theme = 'light' | 'dark';

const system = matchMedia('(prefers-color-scheme: dark)');

const first = (): Theme => {
  const chosen = kept('theme');
  if (chosen === 'light' || chosen === 'dark') return chosen;
  return system.matches ? 'dark' : 'light';
};

/** The theme that the page has. What draws by itself reads the colours of the style sheet again when it changes. */
export const theme = signal<Theme>(first());

theme.subscribe((now) => {
  document.documentElement.dataset['theme'] = now;
});

system.addEventListener('change', () => {
  if (kept('theme') === null) theme.value = system.matches ? 'dark' : 'light';
});

/** Chooses the theme, and remembers it. */
export const paint = (next: Theme): void => {
  keep('theme', next);
  theme.value = next;
};

/** A colour of the style sheet as it is now: `colour('--accent')`. */
export const colour = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
