// A button that opens the forms in which something can be saved or copied.

import { useEffect, useRef, useState } from "preact/hooks";

export interface SaveItem {
  name: string;
  /** What that is. */
  help: string;
  save(): void | Promise<void>;
}

export function SaveMenu({ label, items }: { label: string; items: readonly SaveItem[] }) {
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLSpanElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!open) return;
    const outside = (event: Event) => { if (!box.current?.contains(event.target as Node)) setOpen(false); };
    addEventListener("pointerdown", outside);
    return () => removeEventListener("pointerdown", outside);
  }, [open]);
  const close = () => {
    setOpen(false);
    button.current?.focus();
  };
  return (
    <span class="add" ref={box} onKeyDown={(event) => {
      if (event.key !== "Escape" || !open) return;
      close();
      event.preventDefault();
      event.stopPropagation();
    }}>
      <button ref={button} type="button" aria-expanded={open} aria-label={label} title={label} onClick={() => setOpen(!open)}>save</button>
      {open && (
        <span class="menu to-left" role="group" aria-label={label}>
          {items.map(({ name, help, save }) => <button type="button" key={name} onClick={() => { void save(); close(); }}><b>{name}</b> <span class="faint">{help}</span></button>)}
        </span>
      )}
    </span>
  );
}
