#pragma once

#include "esphome/components/number/number.h"
#include "esphome/components/twinedge/twinedge.h"

namespace esphome::twinedge {

/// A field to type a true value into; it shows what was learnt last.
class TruthNumber : public number::Number, public Parented<TwinModel> {
  protected:
    void control(float value) override {
        if (this->parent_->learn(value))
            this->publish_state(value);
    }
};

} // namespace esphome::twinedge
