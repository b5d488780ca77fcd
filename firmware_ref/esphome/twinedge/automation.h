#pragma once

#include "twinedge.h"
#include "esphome/core/automation.h"

namespace esphome::twinedge {

/// Learn a true value that another part of the configuration knows.
template <typename... Ts> class LearnAction : public Action<Ts...>, public Parented<TwinModel> {
  public:
    TEMPLATABLE_VALUE(float, value)

    void play(const Ts &...x) override {
        this->parent_->learn(this->value_.value(x...));
    }
};

} // namespace esphome::twinedge
