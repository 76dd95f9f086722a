/** What is known of one thing, by name. */
import { Fragment } from 'preact';

/** Names with their values; those that are empty are left out. */
export const Facts = ({ facts }: { facts: readonly (readonly [string, string])[] }) => (
  <dl class="facts">
    {facts
      .filter(([, value]) => value !== '')
      .map(([name, value], place) => (
        <Fragment key={place}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </Fragment>
      ))}
  </dl>
);
