import { Lock } from 'lucide-react';
import type { ReactNode } from 'react';
import { stateText } from '../text/app.ts';
import { EmptyState } from './states.tsx';

/** Shown when the viewer's role lacks access, in place of a request that would be rejected. */
export function DeniedState({ children }: { children: ReactNode }) {
  return (
    <EmptyState icon={Lock} title={stateText.deniedTitle}>
      <p>{children}</p>
      {stateText.denied}
    </EmptyState>
  );
}
