/** What the browser keeps of how the page looks; a browser that keeps nothing is no error. */

/** What was kept under a name, or null. */
export const kept = (name: string): string | null => {
  try {
    return localStorage.getItem(`souk.${name}`);
  } catch {
    return null;
  }
};

/** Keeps a value under a name. */
export const keep = (name: string, value: string): void => {
  try {
    localStorage.setItem(`souk.${name}`, value);
  } catch {
    // It holds until the page is closed.
  }
};
