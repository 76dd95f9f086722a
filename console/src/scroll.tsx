/** What is wider than the page scrolls by itself, by keyboard, too. */
import type { ComponentChildren } from 'preact';

export const Scroll = ({ label, short, children }: { label: string; short?: boolean; children: ComponentChildren }) => (
  <div class={short ? 'scroll short' : 'scroll'} tabIndex={0} role="group" aria-label={label}>
    {children}
  </div>
);
