import type { LucideIcon } from 'lucide-react';
import { useEffect, useRef } from 'react';

interface LevelBarProps {
  /** Accessible name. */
  label: string;
  icon: LucideIcon;
  /** From 0 to 1, read for every drawing. */
  level: () => number;
}

/** Drawing every frame looks the same and, without a GPU, takes a fifth of a core. */
const DRAW_MS = 50;
/** Share of the level at the next drawing, because a meter falls slower than it rises. */
const FALL = 0.73;

/** A level meter. It draws outside of React, because it changes many times a second. */
export function LevelBar({ label, icon: Icon, level }: LevelBarProps) {
  const bar = useRef<HTMLDivElement>(null);
  const latest = useRef(level);
  useEffect(() => {
    latest.current = level;
  });
  useEffect(() => {
    let shown = 0;
    const drawing = setInterval(() => {
      shown = Math.max(latest.current(), shown * FALL);
      if (bar.current) bar.current.style.transform = `scaleX(${shown.toFixed(3)})`;
    }, DRAW_MS);
    return () => clearInterval(drawing);
  }, []);
  return (
    <div className="audio-level" role="img" aria-label={label} title={label}>
      <Icon size={14} color="var(--mantine-color-dimmed)" aria-hidden />
      <div className="level-bar">
        <div ref={bar} className="level-bar-fill" />
      </div>
    </div>
  );
}
