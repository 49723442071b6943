import {
  Activity,
  CreditCard,
  FlaskConical,
  Headphones,
  HeartPulse,
  KeyRound,
  type LucideIcon,
  Phone,
  PhoneCall,
  Users,
} from 'lucide-react';
import { groupText, pageText } from '../text/app.ts';

export interface Page {
  path: string;
  label: string;
  icon: LucideIcon;
  group: string;
}

/** The navigation, in its order. `router.tsx` has the addresses. */
export const PAGES: readonly Page[] = [
  { path: '/live', label: pageText.live, icon: Activity, group: groupText.operate },
  { path: '/calls', label: pageText.calls, icon: PhoneCall, group: groupText.operate },
  { path: '/phone', label: pageText.phone, icon: Headphones, group: groupText.operate },
  { path: '/numbers', label: pageText.numbers, icon: Phone, group: groupText.operate },
  { path: '/playground', label: pageText.playground, icon: FlaskConical, group: groupText.build },
  { path: '/developers', label: pageText.developers, icon: KeyRound, group: groupText.build },
  { path: '/wallet', label: pageText.wallet, icon: CreditCard, group: groupText.manage },
  { path: '/people', label: pageText.people, icon: Users, group: groupText.manage },
  { path: '/health', label: pageText.health, icon: HeartPulse, group: groupText.manage },
];
