import type { LucideIcon } from 'lucide-react';
import { useEffect, useRef } from 'react';

interface LevelBarProps {
  /** Accessible name. */
  label: string;
  icon: LucideIcon;
  /** From 0 to 1, read for every frame. */
  level: () => number;
}

/** A level meter. It draws outside of React, because it changes 60 times a second. */
export function LevelBar({ label, icon: Icon, level }: LevelBarProps) {
  const bar = useRef<HTMLDivElement>(null);
  const latest = useRef(level);
  useEffect(() => {
    latest.current = level;
  });
  useEffect(() => {
    let frame = requestAnimationFrame(draw);
    let shown = 0;
    function draw(): void {
      // Falls slower than it rises, as usual for meters.
      shown = Math.max(latest.current(), shown * 0.9);
      if (bar.current) bar.current.style.transform = `scaleX(${shown.toFixed(3)})`;
      frame = requestAnimationFrame(draw);
    }
    return () => cancelAnimationFrame(frame);
  }, []);
  return (
    <div className="level" role="img" aria-label={label} title={label}>
      <Icon size={14} color="var(--mantine-color-dimmed)" aria-hidden />
      <div className="level-bar">
        <div ref={bar} className="level-bar-fill" />
      </div>
    </div>
  );
}
