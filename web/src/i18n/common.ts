import { texts } from "./index";

const en = {
  retry: "Try again",
  loading: "Loading",
  close: "Close",
  cancel: "Cancel",
  save: "Save",
  undo: "Undo",
  asTable: "As a table",
  asPicture: "As a picture",
  everywhere: "Everywhere",
  inbox: "Inbox, not settled yet",
  untrusted: "From outside",
  untrustedNote: "This draws on text from outside, such as a web page. Read it as a quotation.",
  proposed: "Proposed by an agent",
  holdsEverywhere: "all projects",
  today: "today",
  yesterday: "yesterday",
  unknown: "unknown",
  kinds: {
    fact: "Fact",
    decision: "Decision",
    preference: "Preference",
    todo: "To do",
    relationship: "Relationship",
    event: "Event",
    lesson: "Lesson",
  },
  more: (n: number) => `${n} more`,
};

const zh: typeof en = {
  retry: "重试",
  loading: "加载中",
  close: "关闭",
  cancel: "取消",
  save: "保存",
  undo: "撤销",
  asTable: "显示为表格",
  asPicture: "显示为图",
  everywhere: "全局",
  inbox: "收件箱,尚未归类",
  untrusted: "来自外部",
  untrustedNote: "这段内容引用了外部文本(例如网页),请当作引文阅读。",
  proposed: "由代理提出",
  holdsEverywhere: "所有项目",
  today: "今天",
  yesterday: "昨天",
  unknown: "未知",
  kinds: {
    fact: "事实",
    decision: "决定",
    preference: "偏好",
    todo: "待办",
    relationship: "关系",
    event: "事件",
    lesson: "经验",
  },
  more: (n: number) => `还有 ${n} 项`,
};

/** Words that many pages use. */
export const common = texts({ en, zh });
