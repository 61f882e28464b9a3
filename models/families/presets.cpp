// The sizes that ship with Celloom. Totals are written down here and derived or published beside; tests hold the graphs to them.
#include "models/families/families.h"

namespace celloom::families {

const std::vector<Preset>& presets() {
    // Derivation, no biases: 2·V·h (embedding, head) + L·(h·(h + 2·h·kv/heads) + h·h + 3·h·f + 2·h) + h.
    static const std::vector<Preset> list{
        {"baichuan-tiny", "Baichuan with rotary positions, 5 M parameters: learns on a laptop in minutes", "Baichuan（旋转位置编码），约 500 万参数：笔记本上几分钟可见效果",
         5261568, "derived: V 4096, h 256, L 4, heads 4, f 688"},
        {"baichuan-tiny-alibi", "As baichuan-tiny, with ALiBi positions as Baichuan-13B", "同 baichuan-tiny，位置编码为 Baichuan-13B 的 ALiBi", 5261568,
         "derived: V 4096, h 256, L 4, heads 4, f 688"},
        {"baichuan-tiny-gqa", "As baichuan-tiny, with two key/value heads for four query heads", "同 baichuan-tiny，四个查询头共享两个键值头", 4999424,
         "derived: V 4096, h 256, L 4, heads 4, kv heads 2, f 688"},
        {"baichuan-110m", "Baichuan, 110 M parameters: for one GPU", "Baichuan，1.1 亿参数：适合单块 GPU", 109529856, "derived: V 16000, h 768, L 12, heads 12, f 2048"},
        {"baichuan-7b", "Baichuan-7B as published: rotary positions, context 4096", "公开的 Baichuan-7B：旋转位置编码，上下文 4096", 7000559616,
         "published: README of baichuan-inc/Baichuan-7B"},
        {"baichuan-13b", "Baichuan-13B as published: ALiBi positions, context 4096", "公开的 Baichuan-13B：ALiBi 位置编码，上下文 4096", 13264901120,
         "published: README of baichuan-inc/Baichuan-13B"},
    };
    return list;
}

} // namespace celloom::families
