/** A field whose value is in the address. */
import { useState } from 'preact/hooks';

import { field } from './address';

/**
 * A field for the value `name` of the address, which it is when its typing has ended; `also` changes with it. What is being typed stays,
 * whatever else the view is told meanwhile.
 */
export const Field = ({
  label,
  name,
  also,
  grow,
  ...input
}: {
  label: string;
  name: string;
  also?: Record<string, string>;
  grow?: boolean;
  type: 'text' | 'number';
  maxLength?: number;
  min?: string;
  max?: string;
  step?: string;
}) => {
  const [typed, setTyped] = useState<string | undefined>(undefined);
  const { value, onChange } = field(name, also);
  return (
    <label class={grow ? 'grow' : undefined}>
      {label}
      <input
        list={undefined}
        {...input}
        value={typed ?? value}
        onInput={(event) => setTyped(event.currentTarget.value)}
        onChange={(event) => {
          setTyped(undefined);
          onChange({ currentTarget: { value: event.currentTarget.value.trim() } });
        }}
        onBlur={() => setTyped(undefined)}
      />
    </label>
  );
};
