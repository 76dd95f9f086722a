/** What is wider than the page scrolls by itself, by keyboard, too. */
import type { ComponentChildren } from 'preact';

type Named = { label: string } | { labelledBy: string };

/** Its name is `label`, or the text of the heading with the id `labelledBy`. With `short` it isn't higher than some rows. */
export const Scroll = ({ short, children, ...named }: Named & { short?: boolean; children: ComponentChildren }) => {
  const name = 'label' in named ? { 'aria-label': named.label } : { 'aria-labelledby': named.labelledBy };
  return (
    <div class={short ? 'scroll short' : 'scroll'} tabIndex={0} role="group" {...name}>
      {children}
    </div>
  );
};
